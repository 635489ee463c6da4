"""The site builds without a warning, and its pages are complete."""

import html
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

import pytest

import keras_lengen
from tests.checkout import ROOT, copy_checkout

DOCS = ROOT / "docs"
(COMMAND,) = re.findall(
    r"^```bash\n(.*sphinx.*)\n```$", (DOCS / "install.md").read_text(), re.M
)
"""The one line of the page on installation that builds the site."""
PACKAGES = ("sphinx", "furo", "myst_parser", "sphinx_copybutton")

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The directory of the site that the command builds in a clean copy."""
    missing = [n for n in PACKAGES if importlib.util.find_spec(n) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: install the extra docs")
    source = tmp_path_factory.mktemp("source")
    copy_checkout(source)
    # A stand-in: the packages are installed.
    pip = tmp_path_factory.mktemp("bin") / "pip"
    pip.write_text('#!/bin/sh\necho "pip $*"\n')
    pip.chmod(0o755)
    python = pathlib.Path(sys.executable).parent
    path = os.pathsep.join(map(str, (pip.parent, python, os.environ["PATH"])))
    done = subprocess.run(
        ["bash", "-c", COMMAND],
        cwd=source,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    assert done.stdout.startswith("pip install -e .[docs]\n")
    return source / "docs" / "_build" / "html"


def test_the_site_has_the_version_of_the_package(site):
    text = (site / "_static" / "documentation_options.js").read_text()
    assert f"VERSION: '{keras_lengen.__version__}'" in text


def list_targets(page):
    """Yields the files that a page shows or links to, with the anchors."""
    pattern = r'<(?:a|img|link|script)\b[^>]*?(?:href|src)="([^"]*)"'
    for target in re.findall(pattern, page.read_text()):
        parts = urllib.parse.urlsplit(html.unescape(target))
        if not parts.scheme and not parts.netloc:
            yield urllib.parse.unquote(parts.path), parts.fragment


def test_every_page_is_built(site):
    for page in DOCS.glob("*.md"):
        assert (site / f"{page.stem}.html").exists()
    assert (site / "searchindex.js").stat().st_size > 10_000


def test_files_and_anchors_exist(site):
    pages = list(site.glob("*.html"))
    assert len(pages) > 10
    for page in pages:
        for path, fragment in list_targets(page):
            target = page.parent / path if path else page
            assert target.exists(), f"{page.name}: {path}"
            if fragment and target.suffix == ".html":
                assert f'id="{fragment}"' in target.read_text(), fragment


def test_every_page_has_the_styles_of_wide_tables(site):
    for page in DOCS.glob("*.md"):
        paths = [path for path, _ in list_targets(site / f"{page.stem}.html")]
        assert "_static/site.css" in paths


def test_files_outside_of_docs_are_downloads(site):
    text = (site / "reproducing.html").read_text()
    link = r'href="_downloads/\w+/README.md"><span[^>]*>The page of benchmarks<'
    assert re.search(link, text)
    for page in site.glob("*.html"):
        assert "&lt;inline" not in page.read_text()


def test_parts_of_other_files_are_included(site):
    for page, sentence in {
        "index": "sequences longer than the",
        "install": "TensorFlow comes in wheels that exclude each other",
        "results": "mean accuracy at lengths 25-100",
        "trainers": "missing_duplicate_string",
        "faq": "aligns the queries",
        "extending": "TOKEN_SAMPLERS",
    }.items():
        assert re.search(sentence, (site / f"{page}.html").read_text()), page
    assert "Release a version" not in (site / "extending.html").read_text()
