"""Cells of notebooks that do what no run of the whole notebook shows."""

import functools
import http.client
import http.server
import pathlib
import re
import shutil
import threading
import urllib.request

import pytest

from datasets.text import enwik8
from tests.checkout import ROOT


def find_cell(name, start):
    """The program of the one cell of a notebook that begins like this."""
    text = (ROOT / "colab" / f"{name}.py").read_text()
    programs = [cell.strip() for cell in text.split("\n# %%\n")[1:]]
    (found,) = [cell for cell in programs if cell.startswith(start)]
    return found.partition("\n# %% [markdown]")[0]


FIRST = "$ ^ 9 5 + ^ 1 2 = 7 0 1\n95 + 12 = 107 (right)"
RIGHT = "$ ^ 1 + ^ 2 = 3 0\n1 + 2 = 3 (right)"
WRONG = "$ ^ 1 + ^ 2 = 4 0\n1 + 2 = 4 (wrong, it is 3)"


@pytest.mark.parametrize(
    ("smoke", "answers", "is_noticed"),
    [
        (False, [FIRST, RIGHT], False),
        (False, [FIRST, WRONG], True),
        # A model that has not learned may write anything.
        (True, ["$ ^ 9 5 = + $", WRONG], False),
    ],
)
def test_a_wrong_sum_of_a_demonstration_is_noticed(
    smoke, answers, is_noticed, capsys
):
    cell = find_cell("demonstrations", r'print("\n".join(ANSWERS))')
    names = {"NUMBERS": [(95, 12), (1, 2)], "SMOKE": smoke, "ANSWERS": answers}
    if is_noticed:
        with pytest.raises(AssertionError):
            exec(cell, names)
    else:
        exec(cell, names)
    assert capsys.readouterr().out.startswith("\n".join(answers))


ZIP_BYTES = 1000


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Broken(Quiet):
    """Closes the connection after half of the file."""

    def copyfile(self, source, outputfile):
        outputfile.write(source.read(ZIP_BYTES // 2))


@pytest.fixture
def download(tmp_path, monkeypatch):
    """A function that runs the cell; it returns the name of the text."""
    (tmp_path / "served").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    cell = find_cell("enwik8", "ARCHIVE = ")

    def run(content, handler=Quiet):
        (tmp_path / "served" / "enwik8.zip").write_bytes(content)
        bound = functools.partial(handler, directory=tmp_path / "served")
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), bound) as server:
            threading.Thread(target=server.serve_forever, args=[0.01]).start()
            names = {
                "SMOKE": False,
                "ROOT": pathlib.Path(),
                "RUNS": "runs",
                "URL": f"http://127.0.0.1:{server.server_port}/enwik8.zip",
                "ZIP_BYTES": ZIP_BYTES,
                "http": http,
                "shutil": shutil,
                "urllib": urllib,
            }
            try:
                exec(cell, names)
            finally:
                server.shutdown()
        return names["DATASET"]

    return run


def test_the_text_is_downloaded_once(download):
    cell = find_cell("enwik8", "import http.client")
    names = dict(re.findall(r"^(\w+) = (.*)$", cell, re.MULTILINE))
    assert eval(names["URL"]) == enwik8.URL
    assert eval(names["ZIP_BYTES"]) == enwik8.ZIP_BYTES
    content = bytes(range(250)) * 4
    for served in (content, b"other"):
        assert download(served) == "enwik8"
        assert pathlib.Path("data/enwik8.zip").read_bytes() == content


@pytest.mark.parametrize(
    ("size", "handler"),
    [(ZIP_BYTES - 1, Quiet), (ZIP_BYTES + 1, Quiet), (ZIP_BYTES, Broken)],
    ids=["short", "long", "broken"],
)
def test_a_damaged_download_is_no_archive(size, handler, download, capsys):
    assert download(bytes(size), handler) == "python_source"
    assert list(pathlib.Path("data").iterdir()) == []
    assert "enwik8 was not downloaded: " in capsys.readouterr().out
    # Another run of the cell downloads it again.
    assert download(bytes(ZIP_BYTES)) == "enwik8"
