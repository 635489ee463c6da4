import keras
import pytest

from keras_lengen.layers import (
    ForgettingAttention,
    MultiHeadAttention,
    Recipe,
    RoPE,
    TransformerBlock,
)
from tests.refusals import refuses

NORMAL = keras.initializers.RandomNormal(stddev=0.3)


@keras.saving.register_keras_serializable(package=__name__)
class Undeclared(MultiHeadAttention):
    def __init__(self, *args, kinds=(1,), **kwargs):
        super().__init__(*args, **kwargs)
        self.kinds = kinds


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(MultiHeadAttention),
        Recipe(ForgettingAttention, kernel_initializer=NORMAL, dropout=0.2),
        Recipe(Undeclared, kinds=[1, 2], output_shape=(4,)),
    ],
)
def test_it_is_equal_to_what_its_configuration_makes(recipe):
    again = Recipe.from_config(recipe.get_config())
    assert (again, hash(again)) == (recipe, hash(recipe))
    assert again != recipe.replace(sliding_window=2)
    assert again.replace(use_gate=True) == recipe.replace(use_gate=True)
    assert again != Recipe(type("Other", (recipe.layer,), {}))


def test_layers_start_from_different_values_of_an_initializer():
    recipe = Recipe(MultiHeadAttention, kernel_initializer=NORMAL)
    first, second = (recipe.make(num_heads=1, key_dim=2) for _ in "12")
    for layer in (first, second):
        layer.build((1, 2, 3), (1, 2, 3))
    assert bool(
        keras.ops.any(first.query_dense.kernel != second.query_dense.kernel)
    )


def test_the_recipe_comes_before_the_block_and_cross_attention_has_a_part():
    recipe = Recipe(
        ForgettingAttention, use_bias=False, norm_epsilon=0.5, chunk_size=3
    )
    block = TransformerBlock(
        2,
        attention=recipe,
        cross_attention=True,
        use_bias=True,
        norm_epsilon=0.1,
    )
    block.build((1, 2, 4))
    own, other = block.attention_layer, block.cross_attention_layer
    assert (own.use_bias, own.norm_epsilon, own.chunk_size) == (False, 0.5, 3)
    assert (other.use_bias, other.norm_epsilon) == (True, 0.1)
    assert (type(other), other.chunk_size) == (MultiHeadAttention, 3)


@refuses(
    (RoPE, "MultiHeadAttention or a subclass of it, or a Recipe of one; got"),
    (Recipe(RoPE), "got a recipe of RoPE"),
    (MultiHeadAttention(1, 2), "got an object: pass the class, MultiHeadAtt"),
    ("RoPE", "got 'RoPE': pass the class, not its name"),
    (Recipe(MultiHeadAttention, encoding=RoPE()), "must not have encoding, wh"),
)
def test_what_is_no_recipe_of_attention_is_refused(attention):
    TransformerBlock(2, attention=attention)


def test_wrong_arguments_are_refused_at_once():
    with pytest.raises(ValueError, match=r"no argument 'window'.* sliding_win"):
        Recipe(MultiHeadAttention, window=3)
    with pytest.raises(ValueError, match="sliding_window must be a positive"):
        Recipe(MultiHeadAttention, sliding_window=0)
