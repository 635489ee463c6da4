import pytest

from trainers.errors import ConfigError
from trainers.options.lengths import parse_lengths


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("7", (7,)),
        ("256,1024", (256, 1024)),
        ("1-4", (1, 2, 3, 4)),
        ("1-500:20", tuple(range(1, 501, 20))),
        ("9,3-5,4", (3, 4, 5, 9)),
    ],
)
def test_lengths(text, lengths):
    assert parse_lengths("--test_lengths", text) == lengths


@pytest.mark.parametrize("text", ["", "x", "5-1", "0-3", "1-", "-4", "1:0:2"])
def test_wrong_lengths_say_what_is_expected(text):
    with pytest.raises(ConfigError, match=r"--test_lengths.*1-500:20"):
        parse_lengths("--test_lengths", text)
