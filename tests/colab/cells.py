"""Single cells of the notebooks, for tests that run one of them."""

from tests.test_readme import ROOT


def find_cell(name, start):
    """The program of the one cell of a notebook that begins like this."""
    text = (ROOT / "colab" / f"{name}.py").read_text()
    programs = [cell.strip() for cell in text.split("\n# %%\n")[1:]]
    (found,) = [cell for cell in programs if cell.startswith(start)]
    return found.partition("\n# %% [markdown]")[0]
