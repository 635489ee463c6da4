"""The site builds without a warning, and its pages are complete."""

import html
import re
import urllib.parse

import pytest

from tests.checkout import copy_checkout
from tests.docs.test_pages import TEXTS
from tests.shell import PYTHON, run, with_commands, write_command

(COMMAND,) = re.findall(
    r"^```bash\n(.*sphinx.*)\n```$", TEXTS["docs/start/install.md"], re.M
)
"""The one line of the page on installation that builds the site."""

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The directory of the site that the command builds in a clean copy."""
    packages = ("sphinx", "furo", "myst_parser", "sphinx_copybutton")
    for package in (*packages, "vl_convert"):
        pytest.importorskip(package)
    source = tmp_path_factory.mktemp("source")
    copy_checkout(source)
    # A stand-in: the packages are installed.
    pip = tmp_path_factory.mktemp("bin") / "pip"
    write_command(pip, 'echo "pip $*"')
    environment = with_commands(pip.parent, PYTHON)
    done = run("bash", "-c", COMMAND, cwd=source, env=environment)
    assert done.stdout.startswith("pip install -e .[docs]\n")
    return source / "docs" / "_build" / "html"


def list_targets(page):
    """Yields the files that a page shows or links to, with the anchors."""
    pattern = r'<(?:a|img|link|script)\b[^>]*?(?:href|src)="([^"]*)"'
    # A script is no markup.
    text = re.sub(
        "(<script[^>]*>).*?</script>", r"\1", page.read_text(), flags=re.S
    )
    for target in re.findall(pattern, text):
        parts = urllib.parse.urlsplit(html.unescape(target))
        if not parts.scheme and not parts.netloc:
            yield urllib.parse.unquote(parts.path), parts.fragment


def test_classes_in_tables_are_links(site):
    page = (site / "results" / "methods.html").read_text()
    link = r'<a class="reference internal" href="../reference/index.html#rope">'
    assert re.search(link + "<code[^>]*><span[^>]*>RoPE<", page)


def test_the_explorer_has_its_curves(site):
    page = (site / "results" / "explorer.html").read_text()
    assert "vegaEmbed" in page and '"task":"needle (newer tasks)"' in page


def test_pages_files_and_anchors_exist(site):
    assert (site / "searchindex.js").stat().st_size > 10_000
    pages = [
        path for path in site.rglob("*.html") if "_static" not in path.parts
    ]
    names = {str(page.relative_to(site).with_suffix("")) for page in pages}
    assert {n[5:-3] for n in TEXTS if n.startswith("docs/")} <= names
    for page in pages:
        for path, fragment in list_targets(page):
            target = page.parent / path if path else page
            assert target.exists(), f"{page.name}: {path}"
            if fragment and target.suffix == ".html":
                assert f'id="{fragment}"' in target.read_text(), fragment
