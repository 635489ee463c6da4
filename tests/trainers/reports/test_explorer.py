"""Charts of curves, as pictures and as an element of HTML."""

import io
import json
import math
import re
import shutil

import pytest

from tests.shell import run
from trainers.reports.blocks import Curves
from trainers.reports.chart import Curve, Panel, draw_panels, make_spec
from trainers.reports.explorer import make_fragment
from trainers.reports.page import make_page

pytest.importorskip("vl_convert")

PANEL = Panel(
    task="</script>",
    note="means",
    curves=[
        Curve("ALiBi", [2, 4, 8], [1.0, 0.5, 0.25], runs=2),
        Curve("RoPE", [2, 4, 8], [1.0, 0.75, 0.5], [0.9] * 3, [1.0] * 3),
    ],
    trained=[(1, 2)],
    floors=[Curve("floor", [4, 16], [0.1, 0.1], runs=0)],
)
LOSSES = Panel(
    task="text",
    curves=[
        Curve(method, [1, 99], [loss, loss], published=[loss, None], minutes=3)
        for method, loss in (("FIRE", 2.0), ("NoPE", 1.0))
    ],
    measure="nats",
    trained=[(1, 1)],
    is_share=False,
    higher_is_better=False,
    length_labels=["1x1", "9x11"],
)


@pytest.mark.parametrize(
    ("panel", "kind", "domain", "layers"),
    [(PANEL, None, [0, 1], 4), (LOSSES, "log", None, 5)],
)
def test_the_scales_of_a_panel(panel, kind, domain, layers):
    from PIL import Image

    spec = make_spec(panel)
    assert spec["encoding"]["x"]["scale"].get("type") == kind
    assert spec["layer"][2]["encoding"]["y"]["scale"].get("domain") == domain
    assert len(spec["layer"]) == layers
    # No curve ends before the picture does.
    picture = Image.open(io.BytesIO(draw_panels([panel]))).convert("RGB")
    colors = {color for _, color in picture.getcolors(2**24)}
    assert {(0xD5, 0x5E, 0), (0x56, 0xB4, 0xE9)} & colors


def test_values_that_are_not_finite_are_missing():
    spec = make_spec(Panel("text", [Curve("NoPE", [1, 2], [2.0, math.nan])]))
    (row,) = spec["data"]["values"]
    assert (row["value"], row["low"]) == ([2.0, None], [None, None])


def test_methods_are_listed_from_the_best_with_what_is_known():
    fragment = make_fragment([PANEL, LOSSES])
    found = re.search(r'json">(.*?)</script>', fragment, re.DOTALL)
    entries = [
        [(e["name"], e["note"]) for e in panel["entries"]]
        for panel in json.loads(found[1])
    ]
    assert entries == [
        [
            ("RoPE", "mean 0.62, 1 run"),
            ("ALiBi", "mean 0.38, 2 runs"),
            ("floor", "a trivial predictor"),
        ],
        [
            ("NoPE", "mean 1.00, 3.0 min, 1 run"),
            ("FIRE", "mean 2.00, 3.0 min, 1 run"),
        ],
    ]


def test_a_page_with_curves_needs_no_other_file():
    page = make_page("Title", [Curves([PANEL], [])]).decode()
    assert "vegaEmbed" in page and "<noscript>" in page
    assert not re.search(r"<(script|link)[^>]* (src|href)=", page)


@pytest.mark.process
def test_a_browser_draws_the_first_task(tmp_path):
    """Skipped where there is no browser."""
    names = ("chromium", "google-chrome", "chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        pytest.skip("there is no browser")
    path = tmp_path / "page.html"
    path.write_bytes(make_page("Title", [Curves([PANEL, LOSSES], [])]))
    flags = ("--headless", "--no-sandbox", "--virtual-time-budget=9000")
    flags += (f"--user-data-dir={tmp_path}", "--dump-dom")
    shown = run(browser, *flags, path.as_uri(), cwd=tmp_path).stdout
    shown = re.sub("<script.*?</script>", "", shown, flags=re.DOTALL)
    for text in ("&lt;/script&gt;</option>", 'class="marks"', ">means</p>"):
        assert text in shown
