import numpy as np
import pytest

from datasets.labelled.rows import LabelledError
from datasets.labelled.tokens import Tokenizer, Vocabulary

TEXT = "Ünder 3 trees, a cat."


@pytest.fixture
def tokenizer_file(tmp_path):
    import tokenizers

    pieces = {"[UNK]": 0, "a": 1, "cat": 2, "trees": 3}
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel(pieces, unk_token="[UNK]")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    return str(tmp_path / "tokenizer.json")


@pytest.mark.parametrize(
    ("kind", "count", "text"),
    [
        ("bytes", 22, TEXT),
        ("characters", 21, TEXT),
        ("words", 7, "Ünder 3 trees , a cat ."),
        ("file", 7, "[UNK] [UNK] trees [UNK] a cat [UNK]"),
    ],
)
def test_tokens_have_ids_and_texts(tokenizer_file, kind, count, text):
    kind = tokenizer_file if kind == "file" else kind
    tokenizer = Tokenizer(kind)
    numbers = tokenizer.split(TEXT)
    vocabulary = Vocabulary(tokenizer, tokenizer.pieces)
    ids = vocabulary.tokenize(TEXT)
    assert len(ids) == count
    assert min(ids) >= 4 and max(ids) < vocabulary.size
    np.testing.assert_array_equal(
        ids, vocabulary.map_pieces(tokenizer.pieces)[numbers]
    )
    assert vocabulary.detokenize([*ids, vocabulary.end, 5]) == text


def test_other_pieces_are_unknown():
    tokenizer = Tokenizer("words")
    tokenizer.split("a b c")
    vocabulary = Vocabulary(tokenizer, ["a", "c"])
    assert vocabulary.tokenize("c b a d") == [5, 2, 4, 2]
    # The numbers of another file of data.
    np.testing.assert_array_equal(vocabulary.map_pieces(["d", "c"]), [2, 5, 2])


def test_a_file_that_is_no_tokenizer(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(LabelledError, match=r"a\.json is not the file of"):
        Tokenizer(str(tmp_path / "a.json"))
    with pytest.raises(LabelledError, match="no tokenizer word: name a tok"):
        Tokenizer("word")
