"""All models keep their promises, and broken ones are named."""

import contextlib
import itertools

import numpy as np
import pytest
from keras import ops

from keras_lengen.conformance import check_conformance
from keras_lengen.layers import (
    ATTENTIONS,
    ENCODINGS,
    SAMPLERS,
    FeedForward,
    LearnedEncoding,
    RandomizedRoPE,
    Recipe,
)
from keras_lengen.models import TransformerDecoder
from tests.covering import cover
from tests.keras_lengen.bad_inputs import SIZES
from tests.keras_lengen.layers.encodings import table as encodings
from tests.keras_lengen.layers.positions import table as samplers
from tests.keras_lengen.models import small
from tests.keras_lengen.wrong import Wrong

OPTIONS = {
    "plain": {},
    "pre": {"normalization": "pre", "rms_norm": True},
    "chunks": {
        "attention": small.recipe(chunk_size=2),
        "num_key_value_heads": 1,
    },
    "window": {"attention": small.recipe(sliding_window=3, sink_tokens=1)},
    "tied": {"tie_embeddings": True, "output_size": small.VOCABULARY_SIZE},
    "draws by layer": {"share_positions": "layer", "num_layers": 2},
    "scores": {
        "attention": small.recipe(
            score_factor="log_length",
            use_query_key_norm=True,
            use_sinks=True,
            logit_soft_cap=5.0,
        )
    },
    "gates": {
        "attention": small.recipe(use_gate=True),
        "feedforward": Recipe(FeedForward, gated=True),
    },
}


def first_of_each_kind(classes):
    """Names of classes, one for each combination of class attributes."""
    kinds = {}
    for name, cls in classes.items():
        attributes = tuple(
            str(getattr(cls, attribute))
            for attribute in dir(cls)
            if isinstance(getattr(cls, attribute), bool | int | str)
            and not attribute.startswith("_")
        )
        kinds.setdefault(attributes, name)
    return [*kinds.values()]


def rows():
    """One model of each kind of encoding; all options of all models."""
    names = first_of_each_kind(
        {name: ENCODINGS[name] for name in encodings.ROWS}
    )
    some = itertools.cycle(["plain", "pre", "draws by layer"])
    for encoding, options in zip(names, some, strict=False):
        causal = ENCODINGS[encoding].causal_only
        model = "decoder" if causal else "encoder_decoder"
        yield model, encoding, None, options
    given = itertools.cycle(first_of_each_kind(SAMPLERS))
    pairs = cover([*small.MODELS], [*OPTIONS])
    for (model, options), sampler in zip(pairs, given, strict=False):
        if model != "encoder_decoder" or options in ("window", "tied"):
            yield model, "RoPE", sampler, options


ROWS = [
    # Few rows compile programs, which takes longest, and none by default.
    pytest.param(
        *(*row, number % 12 == 5),
        marks=() if number % 15 == 0 else pytest.mark.product,
    )
    for number, row in enumerate(rows())
]


@pytest.mark.parametrize(
    ("model", "encoding", "sampler", "options", "compiled"), ROWS
)
def test_models_keep_the_promises(model, encoding, sampler, options, compiled):
    changes = {"sampler": samplers.make(sampler)} if sampler else {}
    model = small.make(
        model,
        encoding,
        encoding_changes=changes,
        # Large enough for attention to tell tokens apart.
        embedding_scale=48.0,
        **OPTIONS[options],
    )
    with contextlib.nullcontext() if compiled else small.eagerly():
        check_conformance(model)


@pytest.mark.product
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_attentions_keep_the_promises_in_a_model(attention):
    with small.eagerly():
        check_conformance(small.decoder(attention=ATTENTIONS[attention]))


WRONG = Wrong()
wrong = WRONG.add


@wrong("must be made again from its configuration")
class Forgetful(TransformerDecoder):
    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout / 2}


@wrong("must give outputs that do not depend on later tokens")
class Clairvoyant(TransformerDecoder):
    def logits(self, features):
        return super().logits(features + ops.mean(features, 1, keepdims=True))


@wrong("must give the same with padding at the start")
class Unmasked(TransformerDecoder):
    def padding_mask(self, inputs):
        return None


@wrong("must give the same with the positions of its samplers as inputs")
class Shifted(TransformerDecoder):
    def _check_positions(self, positions, token_ids):
        return super()._check_positions(positions, token_ids) + 1


@wrong("must use the positions among its inputs")
class Placeless(TransformerDecoder):
    def _check_positions(self, positions, token_ids):
        return self.sample_positions({"token_ids": token_ids})


@wrong("must generate tokens with the logits of a call")
class Late(TransformerDecoder):
    def features(self, token_ids, positions, *, cache=None, **kwargs):
        if cache is not None:
            positions = [each + 1 for each in positions]
        return super().features(token_ids, positions, cache=cache, **kwargs)


@wrong("must generate the most likely tokens")
class Reluctant(TransformerDecoder):
    def generate(self, *args, **kwargs):
        tokens, logits = super().generate(*args, **kwargs)
        return np.append(tokens[:, :-1], logits[:, -1:].argmin(-1), 1), logits


@wrong("must tell position 1000 from 1001 in half precision")
class Rounded(TransformerDecoder):
    def by_layer(self, positions):
        rounded = ops.cast(positions, self.compute_dtype)
        return super().by_layer(ops.cast(rounded, "int32"))


@wrong("must train every weight, but .*embeddings did not move")
class Frozen(TransformerDecoder):
    def _embed(self, token_ids):
        return ops.stop_gradient(super()._embed(token_ids))


@wrong("must have a finite loss")
class Infinite(TransformerDecoder):
    def call(self, inputs, training=None):
        logits = super().call(inputs, training=training)
        return logits * np.inf if training else logits


@wrong("must refuse more tokens than 1002 positions")
class Endless(TransformerDecoder):
    def sample_positions(self, inputs, *, training=None):
        if inputs["token_ids"].shape[1] > 1002:
            return np.arange(1003) // 2
        return super().sample_positions(inputs, training=training)


@wrong("must give the same after it was saved and loaded")
class Unsaved(TransformerDecoder):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.factor = 1 + np.random.default_rng().uniform()

    def logits(self, features):
        return super().logits(features) * self.factor


@wrong("must give the same in a compiled program")
class Changing(TransformerDecoder):
    def call(self, inputs, training=None):
        logits = super().call(inputs, training=training)
        return logits if hasattr(logits, "numpy") else 2 * logits


@pytest.mark.parametrize(
    "name",
    [
        name
        if name in ("Clairvoyant", "Unmasked")
        else pytest.param(name, marks=pytest.mark.product)
        for name in WRONG
    ],
)
def test_broken_promises_are_named(name):
    cls, promise = WRONG[name]
    encoding = LearnedEncoding(max_position=1002, initializer="normal")
    if name == "Endless":
        encoding = RandomizedRoPE(max_position=1002)
    sizes = {**SIZES, "output_size": None, "embedding_scale": 48.0}
    model = cls(encoding=encoding, **sizes)
    running = contextlib.nullcontext if name == "Changing" else small.eagerly
    message = f"^{name} {promise}"
    with running(), pytest.raises(AssertionError, match=message):
        check_conformance(model)
