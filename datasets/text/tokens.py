"""Text as tokens: a file of ids beside the text, made once.

The file `<split>-<vocabulary digest>.tokens` holds the ids one after the other,
and `<split>-<vocabulary digest>.json` the checksum of the text and the numbers
of its words and tokens. Both are made again when the text has changed, the
vocabulary has changed or the ids are truncated.
"""

import json
import re

import numpy as np

from datasets.files import only_files, write_whole
from datasets.text.corpus import Corpus, CorpusError, Part

PIECE = 2**16
"""Number of bytes that are read and tokenized at once."""

_REPORT = 2**26
# Ends after the last space that precedes a printable ASCII character.
_LAST_CUT = re.compile(rb"(?s:.+) (?=[!-~])")


def read_pieces(path, size=PIECE):
    """Reads a text in pieces whose tokens are the tokens of the whole text.

    Pieces end before a space that precedes a printable ASCII character. Such a
    space begins a token of GPT-2, and separates words.

    Args:
        path: `pathlib.Path` of a text in UTF-8.
        size: int. Least number of bytes of a piece, except the last one. A
            piece is longer where the text has no such space.

    Yields:
        Strings that are the text when joined.

    Raises:
        CorpusError: If the text is not UTF-8.
    """
    kept = b""
    with open(path, "rb", opener=only_files) as file:
        while block := file.read(size):
            kept += block
            if found := _LAST_CUT.match(kept):
                cut = found.end() - 1
                yield _decode(kept[:cut], path)
                kept = kept[cut:]
    if kept:
        yield _decode(kept, path)


def count_words(text):
    """Returns the number of words, an end of line being one.

    This is how the perplexity of WikiText counts: an end of line is the token
    `<eos>` of the models of words.
    """
    return len(text.split()) + text.count("\n")


def open_tokens(path, checksum, split, vocabulary, report):
    """Opens the tokens of a text; makes their file unless it is there.

    Args:
        path: `pathlib.Path` of a text in UTF-8. The files are made beside it.
        checksum: str. `hash_file(path)`.
        split: str. Name of the split, for the names of the files.
        vocabulary: `BytePairVocabulary` or `WordPieceVocabulary`.
        report: Function of a line of text, called with the progress.

    Returns:
        `Corpus` of the tokens, with the number of words.

    Raises:
        CorpusError: If the text is not UTF-8.
    """
    stem = f"{split}-{vocabulary.digest}"
    tokens = path.with_name(f"{stem}.tokens")
    record = path.with_name(f"{stem}.json")
    dtype = np.dtype(np.uint16 if vocabulary.size <= 2**16 else np.uint32)
    found = _read_record(record, tokens, checksum, dtype)
    if found is None:
        found = _tokenize(path, tokens, vocabulary, dtype, report)
        found["text"] = checksum
        with write_whole(record) as file:
            file.write(json.dumps(found).encode())
    return Corpus(
        [Part(tokens, 0, found["tokens"])],
        dtype=dtype,
        vocabulary=vocabulary,
        words=found["words"],
    )


def _read_record(record, tokens, text, dtype):
    """Returns what is known of the tokens, `None` if they must be made."""
    try:
        with open(record, "rb", opener=only_files) as file:
            found = json.loads(file.read())
        size = found["tokens"] * dtype.itemsize
        known = found["text"] == text and isinstance(found["words"], int)
        whole = tokens.stat().st_size == size
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
    return found if known and whole else None


def _tokenize(path, tokens, vocabulary, dtype, report):
    """Writes the tokens of a text; returns the numbers of both."""
    total, done, told = path.stat().st_size, 0, 0
    found = {"tokens": 0, "words": 0}
    with write_whole(tokens) as file:
        for piece in read_pieces(path):
            ids = vocabulary.tokenize(piece)
            file.write(ids.astype(dtype).tobytes())
            found["tokens"] += len(ids)
            found["words"] += count_words(piece)
            done += len(piece.encode())
            if done - told >= _REPORT:
                told = done
                report(f"{path.name}: {done:,} of {total:,} bytes tokenized.")
    report(
        f"{path.name}: {found['words']:,} words, {found['tokens']:,} tokens."
    )
    return found


def _decode(text, path):
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{path} is not text in UTF-8 ({error.reason}): restore it."
        ) from None
