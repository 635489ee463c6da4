"""Word pieces learned from a text."""

import collections

from datasets.files import write_whole
from datasets.text.corpus import CorpusError
from datasets.text.tokens import PIECE, read_pieces
from datasets.text.vocabulary import WordPieceVocabulary, import_extra

SAMPLE = 2**24
"""Number of bytes of the text from which the words are counted, about."""

WORDS = 20_000
"""Number of distinct words, the most frequent ones, from which pieces are
learned. The time is proportional to it."""

LONGEST = 20
"""Number of characters of the longest words from which pieces are learned."""

CHARACTERS = 512
"""Number of distinct characters, the most frequent ones, that are pieces."""


def learn_word_pieces(text, path, size, report):
    """Learns word pieces from a sample of a text and writes their file.

    The sample consists of parts of the text at equal distances. Its most
    frequent characters are in the vocabulary, as beginnings and as
    continuations of words. Equal texts have equal vocabularies.

    Args:
        text: `pathlib.Path` of a text in UTF-8.
        path: `pathlib.Path` of the file of a `WordPieceVocabulary`.
        size: int. Largest number of tokens.
        report: Function of a line of text, called with the progress.

    Raises:
        CorpusError: If the text has more characters than the vocabulary has
            tokens.
    """
    tools = import_extra(
        "tensorflow_text.tools.wordpiece_vocab.wordpiece_tokenizer_learner_lib"
    )
    stride = max(1, text.stat().st_size // SAMPLE)
    counts = collections.Counter()
    for number, piece in enumerate(read_pieces(text, PIECE)):
        if number % stride == 0:
            counts.update(piece.split())
    if not counts:
        raise CorpusError(f"{text} has no words: choose another text.")
    characters = collections.Counter()
    for word, count in counts.items():
        for character in word:
            characters[character] += count
    kept = [character for character, _ in characters.most_common(CHARACTERS)]
    report(
        f"{text.name}: learning {size:,} word pieces from "
        f"{min(len(counts), WORDS):,} words, which takes minutes."
    )
    tokens = tools.learn(
        counts,
        vocab_size=size,
        reserved_tokens=[
            *WordPieceVocabulary.SPECIAL,
            *(
                prefix + character
                for character in kept
                for prefix in ("", "##")
            ),
        ],
        lower_thresh=1,
        max_input_tokens=WORDS,
        max_token_length=LONGEST,
        max_unique_chars=CHARACTERS,
    )
    if len(tokens) > size:
        raise CorpusError(
            f"{text} needs at least {len(tokens)} word pieces for its "
            f"characters: choose a vocabulary larger than {size}."
        )
    with write_whole(path) as file:
        file.write("".join(f"{token}\n" for token in tokens).encode())
