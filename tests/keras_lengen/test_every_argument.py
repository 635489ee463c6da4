"""Every argument of attentions, blocks and models is kept, and counts."""

import functools

import keras
import numpy as np
import pytest

from keras_lengen.conformance.requirements import rebuild
from keras_lengen.layers import (
    ALiBi,
    FeedForward,
    MultiHeadAttention,
    RandomizedRoPE,
    TransformerBlock,
)
from keras_lengen.models import (
    EncoderDecoder,
    LoopedDecoder,
    TransformerDecoder,
    TransformerEncoder,
)
from tests.keras_lengen.bad_inputs import SIZES
from tests.keras_lengen.layers.arguments import differ
from tests.keras_lengen.models.small import inputs, token_ids

X = np.random.default_rng(2).normal(size=(2, 6, 16)).astype("float32")
MEMORY = np.random.default_rng(3).normal(size=(2, 5, 16)).astype("float32")


@keras.saving.register_keras_serializable(package=__name__)
class SharperAttention(MultiHeadAttention):
    """An attention of one's own, which starts with larger scores."""

    def build(self, *shapes):
        super().build(*shapes)
        self.query_dense.kernel.assign(4 * self.query_dense.kernel)


SMALL = {
    MultiHeadAttention: {
        "num_heads": 2,
        "key_dim": 8,
        "dropout": 0.1,
        "bias_initializer": "he_normal",
        "seed": 1,
    },
    FeedForward: {},
    TransformerBlock: {"num_heads": 2, "cross_attention": True},
    TransformerEncoder: SIZES,
    TransformerDecoder: SIZES,
    EncoderDecoder: SIZES,
    LoopedDecoder: {**SIZES, "loops": 2},
}
"""Arguments of the smallest layers in which others show."""
TOGETHER = {
    "share_positions": {"num_layers": 2, "encoding": RandomizedRoPE(seed=1)},
    "sink_tokens": {"sliding_window": 2},
    "tie_embeddings": {"output_size": 7},
    "norm_epsilon": {"use_query_key_norm": True},
    "flash_attention": {"dropout": 0},
    "cross_encoding": {"cross_attention": True},
}
"""With which arguments one more shows."""
VALUES = {
    "encoding": ALiBi(),
    "cross_encoding": ALiBi(),
    "attention": SharperAttention,
    "attention_axes": 2,
    "logit_soft_cap": 0.1,
    "target_vocabulary_size": 9,
}
"""Values in place of the declared examples."""
HOW = ("chunk_size", "fused", "flash_attention")
"""Arguments that change how, and not what, layers compute."""


def list_arguments():
    """Each class with the arguments that no class before it has."""
    known = set()
    for kind in SMALL:
        new = kind.arguments().keys() - known
        yield from ((kind, argument) for argument in sorted(new))
        # A model passes on what its blocks do with the others.
        if issubclass(kind, keras.Model):
            known |= new


def choose_value(kind, argument):
    """A valid value that the class has not got yet."""
    if argument in VALUES:
        return VALUES[argument]
    present = getattr(make(kind, argument), kind.arguments()[argument].name)
    examples = kind.arguments()[argument].examples
    return next(value for value in examples if value not in (present, None))


def make(kind, argument, **changes):
    keras.utils.set_random_seed(0)
    together = TOGETHER.get(argument, {})
    together = {
        name: value
        for name, value in together.items()
        if name in kind.arguments()
    }
    return kind(**{**SMALL[kind], **together, **changes})


def compute(kind, argument, **changes):
    """Outputs, losses, and weights as constraints leave them."""
    layer = make(kind, argument, **changes)
    # Evaluation is what the longest length of training changes.
    training = argument != "train_length"
    if isinstance(layer, keras.Model):
        batch = inputs(layer, token_ids())
        if getattr(layer, "cross_attention", False):
            batch["memory"] = np.resize(MEMORY, (2, 5, layer.model_dim))
        output = layer(batch, training=training)
    elif isinstance(layer, TransformerBlock):
        memory = MEMORY if layer.cross_attention else None
        output = layer(X, memory=memory, training=training)
    elif isinstance(layer, FeedForward):
        output = layer(X)
    else:
        x = X
        if argument == "attention_axes":
            x = X.reshape(2, 2, 3, -1)
        output = layer(x, x, training=training)
    weights = [
        weight if weight.constraint is None else weight.constraint(weight)
        for weight in layer.trainable_weights
    ]
    return layer, (output, layer.losses, list(map(np.array, weights)))


@functools.cache
def compute_plainly(kind, argument):
    return compute(kind, argument)[1]


@pytest.mark.parametrize(("kind", "argument"), [*list_arguments()])
def test_it_is_an_attribute_and_counts(kind, argument):
    value = choose_value(kind, argument)
    if argument in HOW:
        layer = make(kind, argument, **{argument: value})
    else:
        layer, found = compute(kind, argument, **{argument: value})
        special = argument in (*TOGETHER, "train_length", "attention_axes")
        plain = compute_plainly(kind, argument if special else None)
        assert differ(plain, found)
    declaration = kind.arguments()[argument]
    wanted = declaration.serialize(declaration.convert(value))
    for each in (layer, rebuild(layer)):
        kept = getattr(each, declaration.name or argument)
        assert declaration.serialize(kept) == wanted
