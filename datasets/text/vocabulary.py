"""Vocabularies: from text to ids of tokens and back.

A vocabulary has `begin`, the id of the symbol before a text; `size`, the number
of ids; `digest`, a name that changes with its contents; and the functions
`tokenize`, from a string to a NumPy array of ids, and `detokenize`.
"""

import hashlib
import importlib
import json
import pathlib

import numpy as np

from datasets.files import only_files
from datasets.text.corpus import CorpusError

GPT2_URL = "https://huggingface.co/openai-community/gpt2/resolve/main/"
GPT2_SHA256 = {
    "vocab.json": "196139668be63f3b5d6574427317ae82"
    "f612a97c5d1cdaf36ed2256dbf636783",
    "merges.txt": "1ce1664773c50f3e0cc8842619a93edc"
    "4624525b728b188a9e0be33b7726adc5",
}
"""Checksums of the published files."""


class BytePairVocabulary:
    """Byte pairs as of GPT-2, from `vocab.json` and `merges.txt`.

    Tokenization is lossless: `detokenize` returns the text. `begin` is the id
    of `<|endoftext|>`. No text contains this token: if these characters occur
    in a text, they are tokenized like other characters.

    The package `tokenizers` computes the ids. `BytePairTokenizer` of KerasHub
    0.32 returns other ids than GPT-2: called with a string, it merges bytes of
    neighbouring words; in `tf.data`, it omits a Devanagari digit six that
    stands alone, and splits consecutive line ends in another way.

    Args:
        folder: Folder of the two files.

    Attributes:
        is_published: bool. Whether the files are GPT-2's.

    Raises:
        CorpusError: If a file is missing or not as expected.

    Reference: Radford et al., 2019, section 2.2.
    """

    begin_token = "<|endoftext|>"

    def __init__(self, folder):
        tokenizers = import_extra("tokenizers")
        paths = [pathlib.Path(folder, n) for n in ("vocab.json", "merges.txt")]
        contents = [_read(path, GPT2_URL + path.name) for path in paths]
        try:
            ids = json.loads(contents[0])
            lines = contents[1].decode().split("\n")
            if lines[0].startswith("#version"):
                del lines[0]
            merges = [tuple(line.split()) for line in lines if line.strip()]
            model = tokenizers.models.BPE(vocab=ids, merges=merges)
        except Exception as error:  # `tokenizers` raises nothing narrower.
            reason = str(error).splitlines()[0]
            raise CorpusError(
                f"{paths[0]} and {paths[1].name} are not byte pairs "
                f"({reason}): download both from {GPT2_URL}."
            ) from None
        # The tokenizer would drop bytes without a symbol in silence.
        splitter = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        missing = {*splitter.alphabet(), self.begin_token} - ids.keys()
        if missing:
            raise CorpusError(
                f"{paths[0]} lacks {len(missing)} tokens, {min(missing)!r} "
                f"among them: download it from {GPT2_URL}."
            )
        self._tokenizer = tokenizers.Tokenizer(model)
        self._tokenizer.pre_tokenizer = splitter
        self._tokenizer.decoder = tokenizers.decoders.ByteLevel()
        self.begin = ids[self.begin_token]
        self.size = max(ids.values()) + 1
        self.digest = _digest(b"byte pairs", *contents)
        self.is_published = all(
            hashlib.sha256(content).hexdigest() == GPT2_SHA256[path.name]
            for path, content in zip(paths, contents, strict=True)
        )

    def tokenize(self, text):
        return np.array(self._tokenizer.encode(text).ids, np.int64)

    def detokenize(self, ids):
        return self._tokenizer.decode(list(ids), skip_special_tokens=False)


class WordPieceVocabulary:
    """Parts of words, from a file with one token a line.

    Whitespace separates words. Parts that continue a word start with `##`. An
    end of line is the token `[EOL]`. A word with a character that is not in the
    vocabulary becomes the token `[UNK]`, and spaces have no token. Tokenization
    is therefore not lossless, and the loss per word is a little lower than with
    a lossless vocabulary.

    Args:
        path: `pathlib.Path` of the file. It begins with the lines `SPECIAL`.

    Raises:
        CorpusError: If the file is missing or not as expected.

    Reference: Song et al., 2021. https://arxiv.org/abs/2012.15524
    """

    SPECIAL = ("[BEGIN]", "[UNK]", "[EOL]")

    def __init__(self, path):
        tensorflow_text = import_extra("tensorflow_text")
        contents = _read(path)
        lines = contents.decode(errors="replace").removesuffix("\n")
        self._tokens = lines.split("\n")
        if tuple(self._tokens[:3]) != self.SPECIAL:
            raise CorpusError(
                f"{path} does not begin with the lines "
                f"{', '.join(self.SPECIAL)}: remove it."
            )
        self._tokenizer = tensorflow_text.FastWordpieceTokenizer(
            self._tokens, no_pretokenization=True
        )
        self.begin, _, self._end_of_line = range(3)
        self.size = len(self._tokens)
        self.digest = _digest(b"word pieces", contents)

    def tokenize(self, text):
        lines = [line.split() for line in text.split("\n")]
        words = [word for line in lines for word in line]
        if not words:
            return np.full(len(lines) - 1, self._end_of_line)
        parts = self._tokenizer.tokenize(words)
        starts = parts.row_splits.numpy()
        ends = np.cumsum([len(line) for line in lines[:-1]], dtype=np.int64)
        values = parts.flat_values.numpy()
        return np.insert(values, starts[ends], self._end_of_line)

    def detokenize(self, ids):
        tokens = " ".join(self._tokens[number] for number in ids)
        return tokens.replace(" ##", "").replace("[EOL]", "\n")


def import_extra(name):
    """Imports a package of the extra `text`.

    Raises:
        CorpusError: If it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise CorpusError(
            f"cannot import {name} ({error}): install keras_lengen with the "
            "extra `text`, as in pip install -e '.[tensorflow,text]'."
        ) from None


def _read(path, url=None):
    try:
        with open(path, "rb", opener=only_files) as file:
            return file.read()
    except OSError as error:
        advice = f": download {url} and put it there" if url else ""
        raise CorpusError(
            f"cannot read {path} ({error.strerror}){advice}."
        ) from None


def _digest(*contents):
    # Lengths keep the borders between contents in the digest.
    lengths = ",".join(str(len(content)) for content in contents).encode()
    return hashlib.sha256(b"".join((lengths, *contents))).hexdigest()[:16]
