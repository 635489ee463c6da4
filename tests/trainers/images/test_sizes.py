import pytest

from keras_lengen.layers import AxialEncoding, GridPositions, RoPE
from trainers.errors import ConfigError
from trainers.images.sizes import check_grid, merge_sizes, parse_sizes


def test_sizes_by_their_tokens():
    found = parse_sizes("--test_sizes", " 45x44, 22x22,1x1")
    assert found == {2: (1, 1), 506: (22, 22), 2025: (45, 44)}
    assert list(found) == sorted(found)
    assert merge_sizes({6: (2, 2)}, {2: (1, 1), 6: (2, 2)}) == {
        2: (1, 1),
        6: (2, 2),
    }


def test_what_is_no_size():
    message = "--train_size takes heights and wid"
    for text in (
        *("", "22", "22x", "x22", "22x22,", "0x5", "5x0", "-5x5", "5*5"),
        *("5x5x5", "1024x1024", "9999999x9999999", "5x5;6x6", "5.0x5"),
        *("\u0665x\u0665", "5 x 5", "22X22", "9" * 5000 + "x1"),
    ):
        with pytest.raises(ConfigError, match=message):
            parse_sizes("--train_size", text)


def test_too_many_sizes_and_equal_lengths():
    many = ",".join(f"{n}x{n}" for n in range(1, 12))
    with pytest.raises(ConfigError, match=r"11 sizes .*choose at most 10\."):
        parse_sizes("--test_sizes", many)
    # 630 tokens each.
    with pytest.raises(ConfigError, match=r"30x20 and of 21x29 .* 630 tokens"):
        parse_sizes("--test_sizes", "30x20,21x29")


def make(width):
    grid = GridPositions(width=width)
    return AxialEncoding(row=RoPE(), column=RoPE(), sampler=grid)


def test_grids_of_the_images():
    square = parse_sizes("--test_sizes", "22x22,45x44")
    check_grid(make(None), square)
    check_grid(make(23), {506: (22, 22)})
    check_grid(RoPE(), square)
    with pytest.raises(
        ConfigError,
        match=r"sees 89 rows of 23 tokens .* 45x44 .*remove its w",
    ):
        check_grid(make(23), square)
    long = parse_sizes("--test_sizes", "30x20")
    check_grid(make(21), long)
    with pytest.raises(
        ConfigError, match=r"sees 21 rows of 30 .*30x20 .*more nearly square"
    ):
        check_grid(make(None), long)
