"""Text as bytes or tokens, one kind of corpus per file."""

from datasets.text.corpus import BYTES, Corpus, CorpusError
from datasets.text.enwik8 import open_enwik8
from datasets.text.files import open_path, open_python_source
from datasets.text.vocabulary import BytePairVocabulary
from datasets.text.wikitext103 import has_published_text, open_wikitext103

TEXTS = {
    "enwik8": open_enwik8,
    "python_source": lambda data_dir: open_python_source(),
    "files": open_path,
}
"""Functions of a directory that return the splits of a corpus of bytes."""

__all__ = [
    "BYTES",
    "TEXTS",
    "BytePairVocabulary",
    "Corpus",
    "CorpusError",
    "has_published_text",
    "open_wikitext103",
]
