"""WikiText-103: 103 million words of good and featured Wikipedia articles.

The text of the raw files is tokenized as it is, with its lines of titles and
its empty lines. Splits are those of the authors.

Reference: Merity et al., 2017. https://arxiv.org/abs/1609.07843, with the text
as parquet files at https://huggingface.co/datasets/Salesforce/wikitext.
"""

import pathlib

from datasets.files import hash_file
from datasets.text.corpus import CorpusError
from datasets.text.downloads import check_file, extract
from datasets.text.learned_vocabulary import learn_word_pieces
from datasets.text.tokens import open_tokens
from datasets.text.vocabulary import (
    GPT2_URL,
    BytePairVocabulary,
    WordPieceVocabulary,
)

FOLDER = "wikitext-103-raw"
ARCHIVE = f"{FOLDER}-v1.zip"
URL = f"https://wikitext.smerity.com/{ARCHIVE}"
MIRROR = "https://huggingface.co/datasets/mattdangerw/wikitext-103-raw"
SHA256 = "91c00ae287f0d699e18605c84afc9e45c192bc6b7797ff8837e5474655a33794"
"""Checksum of the archive."""
ZIP_BYTES = 191_984_949
FILES = {
    "train": "wiki.train.raw",
    "validation": "wiki.valid.raw",
    "test": "wiki.test.raw",
}
"""Name of the file of each split."""
SHA1 = {
    "train": "3d06627c15e834408cfee91293f862c11c1cc9ef",
    "validation": "db78d4db83700cba1b1bf4a9381087043db2876d",
    "test": "6f1fe2054a940eebfc76b284b09680763b37f5ea",
}
"""Checksum of the file of each split, as in GluonNLP."""


def open_wikitext103(
    data_dir,
    *,
    vocabulary=None,
    vocabulary_size=8192,
    report=print,
    published=True,
):
    """Opens the splits of WikiText-103 as tokens.

    The first call with a vocabulary learns it, unless it is given, and
    tokenizes the text. Both are kept beside the text for later calls.

    Args:
        data_dir: Directory of `wiki.train.raw`, `wiki.valid.raw` and
            `wiki.test.raw`, or of the folder `wikitext-103-raw` of these, or of
            the archive `wikitext-103-raw-v1.zip`, which is extracted there.
        vocabulary: Folder of `vocab.json` and `merges.txt`, or `None`: word
            pieces learned from the training split.
        vocabulary_size: int. Largest number of word pieces.
        report: Function of a line of text, called with the progress.
        published: bool. Whether the text must be that of WikiText-103, and a
            given vocabulary that of GPT-2.

    Returns:
        Dict from the name of a split to its `Corpus`, with `words`, the number
        of words including one for each end of line.

    Raises:
        CorpusError: If a file is missing, damaged or another one, or cannot be
            written.
    """
    try:
        paths = _find_text(pathlib.Path(data_dir), published)
        if published:
            _check_text(paths)
        checksums = {split: hash_file(path) for split, path in paths.items()}
        if vocabulary is not None:
            found = BytePairVocabulary(vocabulary)
            if published and not found.is_published:
                raise CorpusError(
                    f"{vocabulary} does not contain GPT-2's vocabulary: "
                    f"download vocab.json and merges.txt from {GPT2_URL}."
                )
        else:
            found = _open_word_pieces(
                paths["train"], checksums["train"], vocabulary_size, report
            )
        return {
            split: open_tokens(path, checksums[split], split, found, report)
            for split, path in paths.items()
        }
    except OSError as error:
        raise CorpusError(
            f"cannot read or write WikiText-103 in {data_dir}: {error}."
        ) from None


def has_published_text(data_dir):
    """Returns whether the text in a directory is that of WikiText-103."""
    try:
        _check_text(_find_text(pathlib.Path(data_dir), published=False))
    except CorpusError:
        return False
    return True


def _check_text(paths):
    """Raises `CorpusError` unless the files are those of WikiText-103."""
    for split, path in paths.items():
        found = hash_file(path, "sha1")
        if found != SHA1[split]:
            raise CorpusError(
                f"{path} is not a file of WikiText-103: its SHA-1 is {found} "
                f"instead of {SHA1[split]}: remove it and download {URL}."
            )


def _find_text(directory, published):
    """Returns the paths of the splits, extracted if necessary."""
    plain = any((directory / name).exists() for name in FILES.values())
    folder = directory if plain else directory / FOLDER
    missing = [name for name in FILES.values() if not (folder / name).exists()]
    archive = directory / ARCHIVE
    if missing and not archive.exists() and not published:
        raise CorpusError(
            f"{missing[0]} is missing in {directory}: put text into files of "
            f"the names {', '.join(FILES.values())} there."
        )
    if missing and not archive.exists():
        raise CorpusError(
            f"WikiText-103 is not in {directory}, {missing[0]} is missing: "
            f"download {URL} ({ZIP_BYTES:,} bytes; also at {MIRROR}) and put "
            "it there."
        )
    if missing:
        remedy = f"download {URL} again"
        check_file(archive, None, SHA256 if published else None, remedy)
        for name in missing:
            extract(archive, f"{FOLDER}/{name}", folder / name, remedy)
    paths = {split: folder / name for split, name in FILES.items()}
    for path in paths.values():
        if not path.stat().st_size:
            raise CorpusError(
                f"{path} is empty: download {URL}, put it into {directory} "
                "and remove the empty file."
            )
    return paths


def _open_word_pieces(text, checksum, size, report):
    """Returns the word pieces of a text, learned if necessary."""
    # The name changes with the text, so that another text has its own pieces.
    path = text.with_name(f"vocab-{size}-{checksum[:16]}.txt")
    if not path.exists():
        learn_word_pieces(text, path, size, report)
    return WordPieceVocabulary(path)
