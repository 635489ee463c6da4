"""Text as bytes or tokens, one kind of corpus per file."""

from datasets.text.corpus import Corpus, CorpusError
from datasets.text.enwik8 import open_enwik8
from datasets.text.files import open_path, open_python_source
from datasets.text.wikitext103 import open_wikitext103

TEXTS = {
    "enwik8": open_enwik8,
    "wikitext103": open_wikitext103,
    "python_source": lambda data_dir: open_python_source(),
    "files": open_path,
}
"""Functions of a directory that return the splits of a corpus, by its name."""

__all__ = ["TEXTS", "Corpus", "CorpusError"]
