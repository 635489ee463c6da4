import random

import numpy as np
import pytest
import tensorflow as tf

from datasets.files import hash_file
from datasets.text.corpus import CorpusError
from datasets.text.tokens import count_words, open_tokens, read_pieces
from datasets.text.vocabulary import BytePairVocabulary
from tests.datasets.text.vocabularies import write_byte_pairs

TEXT = " \n = The Title = \n \n the 123 @-@ cat 's \n\n  the é日\u3000 cat \n"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "wiki.test.raw"
    path.write_text(TEXT)
    return path


@pytest.fixture
def vocabulary(tmp_path):
    write_byte_pairs(tmp_path / "gpt2")
    return BytePairVocabulary(tmp_path / "gpt2")


def open_test(path, vocabulary):
    return open_tokens(path, hash_file(path), "test", vocabulary, [].append)


def test_pieces_have_the_tokens_of_the_whole_text(path, vocabulary):
    rng = random.Random(0)
    for size in (1, 7) * 10:
        text = "".join(rng.choices("the1 \n\t.'s é\u3000", k=60)) + TEXT
        path.write_bytes(text.encode())
        pieces = list(read_pieces(path, size))
        assert "".join(pieces) == text
        assert all(pieces) and len(pieces) > 3
        assert sum(map(count_words, pieces)) == count_words(text)
        found = [vocabulary.tokenize(piece) for piece in pieces]
        np.testing.assert_array_equal(
            np.concatenate(found), vocabulary.tokenize(text)
        )


def test_words_by_hand():
    # Five words and two ends of lines; then nothing but an end of line.
    assert count_words(" = Title = \n the cat\n") == 7
    assert count_words(" \n") == 1


@pytest.mark.parametrize(("first", "dtype"), [(0, "u2"), (65_400, "u4")])
def test_tokens_of_large_vocabularies(tmp_path, path, first, dtype):
    write_byte_pairs(tmp_path / "gpt2", first=first)
    vocabulary = BytePairVocabulary(tmp_path / "gpt2")
    corpus = open_test(path, vocabulary)
    ids = vocabulary.tokenize(TEXT)
    assert (len(corpus), corpus.words, corpus.dtype) == (len(ids), 18, dtype)
    assert ids.max() > first
    assert corpus.read_windows(tf.constant([3]), 4).dtype == tf.int32
    np.testing.assert_array_equal(corpus.read(0, len(ids)), ids)


@pytest.mark.parametrize(
    "damage",
    [
        lambda tokens, record: tokens.write_bytes(tokens.read_bytes()[:-2]),
        lambda tokens, record: record.unlink(),
        lambda tokens, record: record.write_text("[]"),
    ],
)
def test_tokens_are_kept_and_made_again_if_damaged(path, vocabulary, damage):
    ids = vocabulary.tokenize(TEXT)
    open_test(path, vocabulary)
    stem = path.with_name(f"test-{vocabulary.digest}")
    tokens, record = stem.with_suffix(".tokens"), stem.with_suffix(".json")
    before = tokens.stat().st_mtime_ns
    open_test(path, vocabulary)
    assert tokens.stat().st_mtime_ns == before
    damage(tokens, record)
    corpus = open_test(path, vocabulary)
    np.testing.assert_array_equal(corpus.read(0, len(corpus)), ids)


def test_another_text_has_other_tokens(path, vocabulary):
    open_test(path, vocabulary)
    # As long as the first text, and with as many tokens.
    other = TEXT.replace("cat", "act")
    path.write_text(other)
    corpus = open_test(path, vocabulary)
    assert vocabulary.detokenize(corpus.read(0, len(corpus))) == other


def test_text_in_another_encoding_is_refused(path, vocabulary):
    path.write_bytes(b" caf\xe9 \n")
    with pytest.raises(CorpusError, match=r"raw is not text in UTF-8 \(inval"):
        open_test(path, vocabulary)
    assert not list(path.parent.glob("test-*"))
