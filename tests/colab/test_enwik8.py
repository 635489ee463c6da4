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
from tests.colab.cells import find_cell

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
            threading.Thread(target=server.serve_forever).start()
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


def test_the_download_is_that_of_the_data_set():
    cell = find_cell("enwik8", "import http.client")
    names = dict(re.findall(r"^(\w+) = (.*)$", cell, re.MULTILINE))
    assert eval(names["URL"]) == enwik8.URL
    assert eval(names["ZIP_BYTES"]) == enwik8.ZIP_BYTES


def test_the_text_is_downloaded_once(download):
    content = bytes(range(250)) * 4
    assert download(content) == "enwik8"
    assert pathlib.Path("data/enwik8.zip").read_bytes() == content
    assert download(b"other") == "enwik8"
    assert pathlib.Path("data/enwik8.zip").read_bytes() == content


@pytest.mark.parametrize(
    ("content", "handler"),
    [
        (bytes(ZIP_BYTES - 1), Quiet),
        (bytes(ZIP_BYTES + 1), Quiet),
        (bytes(ZIP_BYTES), Broken),
    ],
    ids=["short", "long", "broken"],
)
def test_a_damaged_download_is_no_archive(content, handler, download, capsys):
    assert download(content, handler) == "python_source"
    assert list(pathlib.Path("data").iterdir()) == []
    assert "enwik8 was not downloaded: " in capsys.readouterr().out
    # Another run of the cell downloads it again.
    assert download(bytes(ZIP_BYTES)) == "enwik8"
