"""What every sampler promises, tested on all that `SAMPLERS` lists."""

import numpy as np
import pytest

from keras_lengen.checks.constructors import constructor_arguments
from keras_lengen.conformance import check_conformance
from keras_lengen.conformance.samplers import draw
from keras_lengen.layers import (
    SAMPLERS,
    TOKEN_SAMPLERS,
    GridPositions,
    PositionSampler,
)
from tests.keras_lengen.layers.arguments import differ
from tests.keras_lengen.layers.kinds import list_kinds
from tests.keras_lengen.layers.positions.table import (
    EQUALS,
    ROWS,
    TOKEN_ROWS,
    VARIANTS,
    make,
)

INPUTS = np.zeros((3, 8), "int32")


@pytest.mark.parametrize("variant", list_kinds(VARIANTS, make, PositionSampler))
def test_it_keeps_the_promises(variant):
    check_conformance(make(variant))


@pytest.mark.parametrize("name", TOKEN_SAMPLERS)
def test_samplers_of_tokens_keep_the_promises(name):
    check_conformance(TOKEN_SAMPLERS[name](**TOKEN_ROWS[name].arguments))


@pytest.mark.product
@pytest.mark.parametrize(
    "axes",
    [
        {},
        {"row": "RandomizedPositions", "column": "ContinuousPositions"},
        {"row": "RandomizedPositions-ordered=False"},
        {"column": "AugmentedPositions-normalize=True"},
    ],
    ids=str,
)
def test_rows_and_columns_keep_the_promises(axes):
    check_conformance(
        GridPositions(
            width=3, **{axis: make(variant) for axis, variant in axes.items()}
        )
    )


def outcome(sampler, inputs=INPUTS):
    return [draw(sampler, inputs, training=each) for each in (True, False)]


@pytest.mark.parametrize("name", [*SAMPLERS, *TOKEN_SAMPLERS])
def test_every_argument_counts(name):
    cls = {**SAMPLERS, **TOKEN_SAMPLERS}[name]
    row = {**ROWS, **TOKEN_ROWS}[name]
    ids = np.random.default_rng(0).integers(0, EQUALS + 1, (5, 20))
    inputs = INPUTS if name in SAMPLERS else ids
    plain = outcome(cls(**row.arguments), inputs)
    unused = constructor_arguments(cls).keys() - row.alternatives.keys()
    assert unused <= {"seed"}
    for argument, values in row.alternatives.items():
        assert values
        for value in values:
            changes = {argument: value}
            if argument == "end_of_prompt":
                changes["separators"] = [EQUALS]
            changed = outcome(cls(**{**row.arguments, **changes}), inputs)
            assert differ(changed, plain), argument


def test_samplers_claim_no_more_freedom_than_they_take():
    negative = set()
    for variant, (name, _) in VARIANTS.items():
        sampler = make(variant)
        draws = [sampler(INPUTS, training=True) for _ in range(8)]
        assert sampler.is_increasing == (np.diff(draws) >= 0).all()
        if np.min(draws) < 0:
            negative.add(SAMPLERS[name])
    assert negative == {cls for cls in SAMPLERS.values() if cls.negative}
    jitter = make("AugmentedPositions", max_local_shift=0.9)
    assert not jitter.is_increasing
