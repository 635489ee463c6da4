"""Checks of attentions that users make."""

import keras
import pytest
import tensorflow as tf

from keras_lengen.conformance import check_conformance
from keras_lengen.layers import MultiHeadAttention, RandomizedRoPE
from keras_lengen.layers.attention.parts import Part
from keras_lengen.layers.attention.scores import ScoreRule
from tests.keras_lengen.wrong import Wrong

WRONG = Wrong()
wrong = WRONG.add


def test_an_attention_that_draws_keeps_the_promises():
    layer = MultiHeadAttention(2, 4, encoding=RandomizedRoPE(), dropout=0.1)
    check_conformance(layer)


@wrong("must hide later tokens if `use_causal_mask` is true")
class Foreseeing(MultiHeadAttention):
    def find_reach(self, causal):
        return super().find_reach(False)


@wrong("must give a padded sequence what the sequence gives alone")
class Padded(MultiHeadAttention):
    def _attend(self, rule, call, *others):
        call = call.see(padding=None, joined=None)
        return super()._attend(rule, call, *others)


@wrong("must give one token at a time, with a cache, what it gives the whole")
class Decoding(MultiHeadAttention):
    def make_entries(self):
        return *super().make_entries(), DoubledQuery()


class DoubledQuery(Part):
    def enter(self, query, key, context):
        return (query if context.index is None else 2 * query), key


@wrong("must give the same in chunks of queries")
class Chunked(MultiHeadAttention):
    def make_scores(self, training):
        return Doubled(**vars(super().make_scores(training)))


class Doubled(ScoreRule):
    def __call__(self, call):
        scores = super().__call__(call)
        return 2 * scores if scores.shape[-2:] == (4, 6) else scores


@wrong("must give the same in a model that was saved and loaded")
class Unsaved(MultiHeadAttention):
    def load_own_variables(self, store):
        """Leaves the sinks as they started."""


@wrong("must give the same in a compiled program")
class Compiled(MultiHeadAttention):
    def _combine(self, output, *others):
        in_program = not tf.executing_eagerly()
        symbolic = isinstance(output, keras.KerasTensor)
        factor = 2 if in_program and not symbolic else 1
        return super()._combine(factor * output, *others)


@pytest.mark.parametrize("name", WRONG)
def test_broken_promises_are_named(name):
    cls, promise = WRONG[name]
    with pytest.raises(AssertionError, match=f"^{name} {promise}"):
        check_conformance(cls(2, 4, use_sinks=True))
