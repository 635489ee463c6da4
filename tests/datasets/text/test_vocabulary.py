import sys

import pytest

from datasets.text import learned_vocabulary
from datasets.text.corpus import CorpusError
from datasets.text.learned_vocabulary import learn_word_pieces
from datasets.text.vocabulary import BytePairVocabulary, WordPieceVocabulary
from tests.datasets.text.vocabularies import MERGES, write_byte_pairs


def test_byte_pairs_are_those_of_gpt2(tmp_path):
    ids = write_byte_pairs(tmp_path)
    vocabulary = BytePairVocabulary(tmp_path)
    found = vocabulary.tokenize(" the\n \n = The  1234's")
    symbols = " ".join([*ids][number] for number in found)
    assert symbols == "Ġthe Ċ ĠĊ Ġ= Ġ T h e Ġ Ġ 123 4 's"
    assert vocabulary.begin == ids["<|endoftext|>"] == 256 + len(MERGES)
    assert vocabulary.size == 257 + len(MERGES)
    # Every character survives.
    text = "६ the १६ \u2009\u00a0\u3000日本 <|endoftext|> \ufeff\x00\r\n"
    found = vocabulary.tokenize(text)
    assert vocabulary.detokenize(found) == text
    assert vocabulary.begin not in found


def test_the_digest_changes_with_the_contents(tmp_path):
    digests = set()
    for merges in (MERGES, MERGES[:-1], MERGES):
        write_byte_pairs(tmp_path, merges=merges)
        digests.add(BytePairVocabulary(tmp_path).digest)
    assert len(digests) == 2


def test_bad_byte_pairs_are_refused(tmp_path):
    def refuse(message):
        with pytest.raises(CorpusError, match=message):
            BytePairVocabulary(tmp_path)

    refuse(r"vocab.json \(No such file.*: download https://.*/vocab.json")
    write_byte_pairs(tmp_path)
    (tmp_path / "merges.txt").write_text("q q\n")
    refuse(r"vocab.json and merges.txt are not byte pairs \(.*download")
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    (tmp_path / "vocab.json").write_text('{"a": 0}')
    refuse(r"vocab.json lacks 256 tokens, '!' among them: download")


def test_word_pieces_by_hand(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("[BEGIN]\n[UNK]\n[EOL]\nthe\ncat\n##s\ns\na\n@-@\n,\n")
    word_pieces = WordPieceVocabulary(path)
    text = " the cats \n \n a dog @-@ cat"
    expected = [3, 4, 5, 2, 2, 7, 1, 8, 4]
    assert word_pieces.tokenize(text).tolist() == expected
    assert word_pieces.detokenize(expected) == "the cats \n \n a [UNK] @-@ cat"
    assert word_pieces.tokenize(" \n\n ").tolist() == [2, 2]
    assert word_pieces.tokenize(" ").tolist() == []
    assert (word_pieces.begin, word_pieces.size) == (0, 10)


def test_a_file_of_other_pieces_is_refused(tmp_path):
    path = tmp_path / "vocab.txt"
    with pytest.raises(CorpusError, match=r"cannot read .*No such file"):
        WordPieceVocabulary(path)
    path.write_text("the\ncat\n")
    with pytest.raises(CorpusError, match="does not begin with the lines"):
        WordPieceVocabulary(path)


def learn(path, text, size=60):
    source = path / "text"
    source.write_text(text)
    learn_word_pieces(source, path / "vocab.txt", size, lambda line: None)
    return WordPieceVocabulary(path / "vocab.txt")


def test_learned_pieces_write_every_word_of_the_text(tmp_path):
    text = "the cat sat \n on the mat , the rat sat \n" * 20
    vocabulary = learn(tmp_path, text)
    assert vocabulary.size <= 60
    ids = vocabulary.tokenize(text)
    assert vocabulary.detokenize(ids).split() == text.split()
    # Frequent words are one piece.
    assert len(vocabulary.tokenize("the sat")) == 2


def test_the_sample_is_bounded(tmp_path, monkeypatch):
    class Tools:
        def learn(counts, **options):
            # A tenth of 3000 words, except for the lengths of the pieces.
            assert 250 < sum(counts.values()) < 350
            return [*WordPieceVocabulary.SPECIAL]

    monkeypatch.setattr(learned_vocabulary, "SAMPLE", 1000)
    monkeypatch.setattr(learned_vocabulary, "PIECE", 100)
    monkeypatch.setattr(learned_vocabulary, "import_extra", lambda _: Tools)
    assert learn(tmp_path, "the cat sat on a mat " * 500).size == 3


def test_too_small_a_vocabulary_is_refused(tmp_path):
    with pytest.raises(CorpusError, match=r"needs at least \d+ word pieces"):
        learn(tmp_path, "the quick brown fox \n", size=10)
    with pytest.raises(CorpusError, match="has no words"):
        learn(tmp_path, " \n")


def test_a_missing_package_names_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(CorpusError, match=r"import tokenizers .*extra `te"):
        BytePairVocabulary(tmp_path)
