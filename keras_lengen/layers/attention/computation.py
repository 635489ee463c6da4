"""Computation of attention from queries, keys and values."""

from typing import Any

import keras
from keras import ops

from keras_lengen.layers.attention.cache import CachedKeys
from keras_lengen.layers.attention.call import Call
from keras_lengen.layers.attention.context import Context
from keras_lengen.layers.attention.engines import (
    attend_at_once,
    attend_in_chunks,
    attend_near,
)
from keras_lengen.layers.attention.flash import attend_flash
from keras_lengen.layers.attention.fused import attend_fused, is_fused
from keras_lengen.layers.attention.parts import Part
from keras_lengen.layers.attention.positional import (
    EncodedBias,
    EncodedProducts,
    Rotation,
    RotationBySteps,
)
from keras_lengen.layers.attention.query_key_norm import QueryKeyNorm
from keras_lengen.layers.attention.rule import Rule
from keras_lengen.layers.attention.scores import (
    FACTORS,
    Factor,
    ScoreRule,
    TrainLengthFactor,
)
from keras_lengen.layers.attention.visibility import Reach
from keras_lengen.layers.attention.weights import Entmax, Softmax, WeightRule
from keras_lengen.types import Tensor

DIRECT_PAIRS = 2**22
"""Largest number of pairs of queries and keys that `"auto"` computes without
chunks."""

CHUNK_PAIRS = 2**21
"""Largest number of pairs of queries and keys in a chunk of `"auto"`."""

WINDOW_CHUNKS = (256, 1024)
"""Smallest and largest number of queries in a chunk of `"auto"` if chunks read
only the keys in a sliding window."""


OF_SCORES = ("score_factor", "train_length", "logit_soft_cap")
"""Names of the options of `make_scores`."""

OF_WEIGHTS = ("use_sinks", "use_entmax")
"""Names of the options of `make_weights`."""

OF_WINDOWS = ("sliding_window", "sink_tokens")
"""Names of the options of `find_reach`."""


class Computation(CachedKeys):
    """Base class of attention, with what it computes after the projections.

    `make_rule` says what scores and weights are, and `_attend` chooses the
    engine that computes them. Subclasses have the attributes that are options
    of scores, windows and chunks.
    """

    def _add_score_weights(self) -> None:
        """Creates the weights of the options of scores."""
        heads = self.num_heads
        if isinstance(self.score_factor, str):
            kind = FACTORS[self.score_factor]
            shape, start = kind.start(heads, self.input_widths["query"])
            self.factor = self.add_weight(
                name="score_factor",
                shape=shape,
                initializer=keras.initializers.Constant(start),
                autocast=False,
            )
        if self.use_query_key_norm:
            self.query_scale, self.key_scale = (
                self.add_weight(
                    name=f"{name}_scale",
                    shape=(self.key_dim,),
                    initializer="ones",
                    autocast=False,
                )
                for name in ("query", "key")
            )
        if self.use_sinks:
            self.sinks = self.add_weight(
                name="sinks",
                shape=(heads, 1, 1),
                initializer=keras.initializers.RandomNormal(stddev=0.02),
                autocast=False,
            )

    def _attend(
        self, rule: Rule, call: Call, context: Context, return_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Computes the attention of all queries, in the way that is best.

        Args:
            rule: `Rule`.
            call: `Call`.
            context: `Context`.
            return_weights: bool, whether weights are wanted, for which there
                are no chunks.

        Returns:
            Weighted sums of the values `(B, T, H, value_dim)`, and the weights,
            float32 `(B, H, T, S)`, or `None`.
        """
        if self.flash_attention:
            return attend_flash(rule.scores, call, return_weights), None
        if is_fused(
            *(self.fused, rule, call),
            has_cache=context.index is not None,
            return_weights=return_weights,
        ):
            return attend_fused(rule, call), None
        if return_weights:
            output, weights = attend_at_once(rule, call)
            # Masks may hide all scores of an invalid query, but not these.
            marks = ops.transpose(call.queries["query"][..., :1], (0, 2, 1, 3))
            return output, weights + ops.cast(0 * marks, "float32")
        size = context.chunk_size
        if size is None:
            return attend_at_once(rule, call)[0], None
        sliced = context.window is not None and context.window.sliced
        attend = attend_near if sliced else attend_in_chunks
        return attend(rule, call, size), None

    def find_reach(self, causal: bool) -> Reach:
        """Finds which keys queries see by their numbers.

        Args:
            causal: bool, whether queries attend to no later keys.
        """
        return Reach(causal, self.sliding_window, self.sink_tokens)

    def make_rule(self, training: bool | None) -> Rule:
        """Makes the rule by which a call computes weights."""
        drops = training and self.dropout
        return Rule(
            self.make_entries(),
            self.make_scores(training),
            self.make_weights(),
            self.dropout_layer if drops else None,
            training,
        )

    def make_entries(self) -> tuple[Part, ...]:
        """Makes the parts that change queries and keys before the scores.

        The constructor calls it too, where weights do not exist.
        """
        entries: list[Part] = []
        if self.use_query_key_norm:
            scales = self.query_scale, self.key_scale
            entries.append(QueryKeyNorm(*scales, self.norm_epsilon))
        encoding = self.encoding
        if encoding.stage == "rotation" and encoding.reads_inputs:
            sizes = self.key_heads, self.key_dim
            entries.append(RotationBySteps(encoding, *sizes))
        elif encoding.stage == "rotation":
            entries.append(Rotation(encoding))
        return tuple(entries)

    def make_scores(self, training: bool | None) -> ScoreRule:
        """Makes the rule by which queries and keys give scores.

        The constructor calls it too, where weights do not exist.

        Args:
            training: bool or `None`, whether the call trains.
        """
        factors: list[Factor] = []
        if isinstance(self.score_factor, str):
            factors.append(FACTORS[self.score_factor](self.factor))
        elif self.score_factor is not None:
            factors.append(self.score_factor)
        if self.train_length is not None and not training:
            factors.append(TrainLengthFactor(self.train_length))
        encoding = self.encoding
        return ScoreRule(
            EncodedProducts(encoding),
            self.key_dim**-0.5 if self.scale_scores else 1.0,
            tuple(factors),
            self.logit_soft_cap,
            (EncodedBias(encoding),) if encoding.stage == "bias" else (),
        )

    def make_weights(self) -> WeightRule:
        """Makes the rule by which scores become weights.

        The constructor calls it too, where weights do not exist.
        """
        rule = Entmax if self.use_entmax else Softmax
        return rule(self.sinks)

    def find_chunk_size(
        self, tokens: Any, keys: Any, *, sliced: bool = False
    ) -> int | None:
        """Finds the number of queries in a chunk, or `None` for no chunks.

        Args:
            tokens: Number of queries as in a tensor's shape: an int, `None`,
                or a symbol of JAX.
            keys: Number of keys, in the same form.
            sliced: bool, whether chunks read only the keys in the window.
        """
        size = None if self.flash_attention else self.chunk_size
        if not isinstance(tokens, int | None):
            # JAX cannot verify that a symbolic size splits into chunks.
            return None
        if size == "auto":
            if not (isinstance(tokens, int) and isinstance(keys, int)):
                return None
            if tokens * keys <= DIRECT_PAIRS:
                return None
            size = max(1, CHUNK_PAIRS // keys)
            if sliced and self.sliding_window is not None:
                # Each key is read by about two chunks.
                least, most = WINDOW_CHUNKS
                size = min(max(self.sliding_window, least), most)
        if size is None or (tokens is not None and tokens <= size):
            return None
        return size
