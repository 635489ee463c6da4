import pytest

from keras_lengen import layers
from tests.trainers.toy import toy_config
from trainers.choosing.code import write_call, write_example


@pytest.mark.parametrize("name", layers.ENCODINGS)
def test_the_code_of_an_encoding_makes_it_again(name):
    config = toy_config(encoding=name)
    code = write_example(config).partition("attention =")[0]
    made = {}
    exec(code, made)
    encoding = made["encoding"]
    assert type(encoding).__name__ == name
    assert write_call(encoding) in code


def test_samplers_and_attention_are_imported():
    config = toy_config(
        encoding="RoPE(layout='halves')",
        sampler="SkippedPositions(num_pieces=3)",
        attention="StickBreakingAttention",
        model="decoder",
    )
    assert write_example(config) == (
        "from keras_lengen.layers import RoPE, SkippedPositions, "
        "StickBreakingAttention\n"
        "\n"
        "encoding = RoPE(layout='halves', sampler=SkippedPositions("
        "max_position=32, num_pieces=3))\n"
        "attention = StickBreakingAttention(\n"
        "    num_heads=2, key_dim=4, encoding=encoding\n"
        ")"
    )
