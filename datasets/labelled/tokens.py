"""Tokens of texts, and the vocabulary that training makes of them.

One pass over the data gives each piece of a text a number in the order in which
it first occurs. The vocabulary of a model has the pieces that its training
examples have; other pieces become the unknown token.
"""

import hashlib
import json
import os
import pathlib
import re

import numpy as np

from datasets.labelled.rows import LabelledError, reading

TOKENS = ("bytes", "characters", "words")

PADDING, END, UNKNOWN, ANSWER = range(4)
SPECIAL = ("[PAD]", "[END]", "[UNKNOWN]", "[ANSWER]")
"""Tokens of every vocabulary, ids 0 to 3. `[ANSWER]` stands between an input
and its answer, and where a label is read."""

MOST_PIECES = 2**22
"""Largest number of different pieces that a pass numbers; further ones become
the last number, which is unknown."""

_WORD = re.compile(r"\w+|[^\w\s]")


class Tokenizer:
    """Splits texts into numbered pieces.

    Args:
        kind: str, of `TOKENS`, or the path of the file of a tokenizer of the
            package `tokenizers`, such as `tokenizer.json`.
        pieces: List of str, the pieces that are numbered already.

    Attributes:
        pieces: List of str, by number.
        digest: str. Differs for other files of a tokenizer.

    >>> tokenizer = Tokenizer("words")
    >>> tokenizer.split("to be, or not to be").tolist()
    [0, 1, 2, 3, 4, 0, 1]
    >>> tokenizer.pieces
    ['to', 'be', ',', 'or', 'not']
    """

    def __init__(self, kind, pieces=()):
        self.kind = kind
        self.digest = kind
        self.pieces = list(pieces)
        self._numbers = {piece: n for n, piece in enumerate(self.pieces)}
        self.file = None
        if kind == "bytes":
            self.pieces = [f"<0x{byte:02X}>" for byte in range(256)]
        elif kind not in TOKENS:
            self.file, self.digest = _open_tokenizer(kind)
            self.pieces = [
                self.file.id_to_token(number) or ""
                for number in range(_count_ids(self.file))
            ]

    @property
    def is_growing(self):
        """Whether pieces are numbered as they come."""
        return self.kind in ("characters", "words")

    def split(self, text):
        """Returns the numbers of the pieces of a text, uint32 `(tokens,)`.

        Args:
            text: str, or a list of str, each of which is one piece.
        """
        if self.file is not None:
            found = self.file.encode(text, add_special_tokens=False).ids
        elif self.kind == "bytes":
            found = np.frombuffer(text.encode(), np.uint8)
        else:
            is_text = self.kind == "words" and isinstance(text, str)
            pieces = _WORD.findall(text) if is_text else text
            found = [self._number(piece) for piece in pieces]
        return np.asarray(found, np.uint32)

    def _number(self, piece):
        number = self._numbers.get(piece)
        if number is None:
            number = min(len(self.pieces), MOST_PIECES)
            if number < MOST_PIECES:
                self._numbers[piece] = number
                self.pieces.append(piece)
        return number


class Vocabulary:
    """The tokens of a model.

    Args:
        tokenizer: `Tokenizer`.
        pieces: List of its pieces that have a token.

    Attributes:
        size: int. Number of ids.
        words: Tuple of str, the tokens by id.
    """

    end, unknown, answer = END, UNKNOWN, ANSWER

    def __init__(self, tokenizer, pieces):
        self.tokenizer = tokenizer
        self.words = (*SPECIAL, *pieces)
        self.size = len(self.words)
        self._ids = {
            piece: number + len(SPECIAL) for number, piece in enumerate(pieces)
        }

    def map_pieces(self, pieces):
        """Returns the ids of numbered pieces, int32 `(len(pieces) + 1,)`.

        The last entry is the id of pieces without a number.
        """
        if not self.tokenizer.is_growing:
            found = range(len(SPECIAL), self.size)
        else:
            found = (self._ids.get(piece, UNKNOWN) for piece in pieces)
        return np.array([*found, UNKNOWN], np.int32)

    def tokenize(self, text):
        """Returns the ids of the tokens of a text, a list of int."""
        tokenizer = self.tokenizer
        if tokenizer.is_growing:
            # Pieces of this text have no numbers of their own.
            tokenizer = Tokenizer(tokenizer.kind)
        found = tokenizer.split(text)
        return self.map_pieces(tokenizer.pieces)[found].tolist()

    def detokenize(self, ids):
        """Returns the text of tokens before the end of an answer, a str."""
        ids = [int(number) for number in ids]
        if END in ids:
            ids = ids[: ids.index(END)]
        if self.tokenizer.is_growing:
            separator = " " if self.tokenizer.kind == "words" else ""
            return separator.join(self.words[number] for number in ids)
        numbers = [n - len(SPECIAL) for n in ids if n >= len(SPECIAL)]
        if self.tokenizer.kind == "bytes":
            return bytes(numbers).decode(errors="replace")
        return self.tokenizer.file.decode(numbers)


def _open_tokenizer(path):
    path = pathlib.Path(path).expanduser()
    known = f"name a tokenizer.json, or one of {', '.join(TOKENS)}."
    if not os.path.exists(path):
        raise LabelledError(f"there is no tokenizer {path}: {known}")
    with reading(path):
        content = path.read_bytes()
    try:
        import tokenizers
    except ImportError as error:
        raise LabelledError(
            f"cannot import tokenizers ({error}): install keras_lengen with "
            "the extra `text`."
        ) from None
    try:
        json.loads(content)
        found = tokenizers.Tokenizer.from_str(content.decode())
    except Exception as error:  # `tokenizers` raises nothing narrower.
        reason = str(error).splitlines()[0]
        raise LabelledError(
            f"{path} is not the file of a tokenizer of the package tokenizers "
            f"({reason}): {known}"
        ) from None
    found.no_padding()
    found.no_truncation()
    return found, hashlib.sha256(content).hexdigest()[:16]


def _count_ids(tokenizer):
    return max(tokenizer.get_vocab().values(), default=-1) + 1
