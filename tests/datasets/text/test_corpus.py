import os

import numpy as np
import pytest
import tensorflow as tf

from datasets.text.corpus import Corpus, CorpusError, Part

CONTENT = bytes(range(256)) * 3


@pytest.fixture
def parts(tmp_path):
    """Parts of two files, and the bytes that they have together."""
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_bytes(CONTENT)
    spans = [(0, 0, 10), (1, 100, 103), (0, 300, 300), (0, 5, 205)]
    parts = [Part(paths[file], first, last) for file, first, last in spans]
    return parts, b"".join(CONTENT[first:last] for _, first, last in spans)


def test_any_range_of_the_parts(parts):
    corpus, expected = Corpus(parts[0]), parts[1]
    assert len(corpus) == len(expected) == 213
    rng = np.random.default_rng(0)
    for _ in range(200):
        start, stop = sorted(rng.integers(0, len(expected) + 1, 2).tolist())
        found = corpus.read(start, stop - start)
        assert found.tobytes() == expected[start:stop]


def test_windows_in_a_graph_with_zeros_beyond_the_end(parts):
    corpus, expected = Corpus(parts[0]), parts[1] + bytes(20)
    starts = [0, 8, 100, 208, 300]
    read = tf.function(lambda starts: corpus.read_windows(starts, 7))
    windows = read(tf.constant(starts, tf.int64))
    assert windows.dtype == tf.int32
    assert windows.shape == (5, 7)
    for start, window in zip(starts, windows.numpy(), strict=True):
        inside = expected[start : start + 7].ljust(7, b"\0")
        assert bytes(window.tolist()) == inside


def test_the_digest_tells_texts_apart_and_not_places(tmp_path):
    def digest(name, content):
        path = tmp_path / name
        path.write_bytes(content)
        return Corpus([Part(path, 0, len(content))]).digest

    content = CONTENT * 4000
    first = digest("a", content)
    assert digest("b", content) == first
    # A byte in the first and in the last chunk, and another length.
    for changed in (b"x" + content[1:], content[:-1] + b"x", content[:-1]):
        assert digest("c", changed) != first


def test_a_file_that_changed_is_named(parts):
    corpus = Corpus(parts[0])
    path = parts[0][3].path
    path.write_bytes(CONTENT[:50])
    corpus.read(0, 13)
    with pytest.raises(CorpusError, match=f"{path} ends after 50 bytes, and"):
        corpus.read(13, 100)
    path.unlink()
    message = f"cannot read {path} any more "
    with pytest.raises(CorpusError, match=rf"{message}\(No such file or dir"):
        corpus.read(0, 13)
    os.mkfifo(path)
    with pytest.raises(CorpusError, match=rf"{message}\(it is not a regular"):
        corpus.read(0, 13)
