"""README tells the truth: examples run, links and numbers are right."""

import json
import pathlib
import re

import numpy as np
import pytest

from benchmarks.result_tables import RESULTS
from tests.products import product

ROOT = pathlib.Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


# Generation takes half a minute.
@pytest.mark.parametrize(
    "example", product(EXAMPLES, lambda text: "generate" not in text)
)
def test_example_makes_a_model_that_trains(example):
    names = {}
    exec(example, names)
    model = names["model"]
    token_ids = np.random.default_rng(0).integers(0, 10, (4, 12))
    if not model.compiled:
        model.compile("adam", "mse")
        targets = np.zeros((4, 12, model.output_size))
    else:
        targets = token_ids
    assert model.fit(token_ids, targets, verbose=0).history["loss"]


def select(report, **values):
    """The row of a report that has these values."""
    rows = json.loads((RESULTS / f"{report}.json").read_text())["rows"]
    (row,) = [row for row in rows if values.items() <= row.items()]
    return row


def test_measured_numbers_are_the_committed_results():
    short, long = (
        select("train_step", encoding="RandomizedRoPE", tokens=tokens)
        for tokens in (41, 512)
    )
    chunks = select(
        "long_attention", encoding="RoPE", chunk_size="auto", length=16384
    )
    direct = select(
        "long_attention", encoding="RoPE", chunk_size=None, length=4096
    )
    cached = select("generation", encoding="RoPE", batch_size=1)
    expected = [
        f"{short['ratio_to_keras']:.2f} times as fast",
        f"{long['ratio_to_keras']:.2f} times as fast on 8 x 512",
        f"over 16,384 tokens .* {chunks['peak_mebibytes'] / 1024:.1f} GiB",
        f"4,096 tokens need {direct['peak_mebibytes'] / 1024:.1f} GiB",
        f"{cached['speed_of_recomputing']:.0f} times as fast as without",
    ]
    text = " ".join(README.partition("### Speed and memory")[2].split())
    for number in expected:
        assert re.search(number, text), number


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "benchmarks/README.md"]
)
def test_links_lead_somewhere(page):
    path = ROOT / page
    targets = re.findall(r"\]\(([^)#:]+)\)", path.read_text())
    for target in targets:
        assert (path.parent / target).exists(), target
