"""Computation of attention from queries, keys and values."""

from typing import Any, cast

import keras
from keras import ops

from keras_lengen.layers.attention.cache import CachedKeys
from keras_lengen.layers.attention.chunks import Tensors, attend_in_chunks
from keras_lengen.layers.attention.flash import attend_flash
from keras_lengen.layers.attention.fused import attend_fused, is_fused
from keras_lengen.layers.attention.inputs import Context
from keras_lengen.layers.attention.parts import Call, Part
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
from keras_lengen.layers.attention.visibility import (
    Reach,
    Visibility,
    find_visible,
)
from keras_lengen.layers.attention.weighted_sums import (
    is_tensorflow_graph,
    sum_values,
)
from keras_lengen.layers.attention.weights import (
    Entmax,
    Softmax,
    WeightRule,
    hide_scores,
)
from keras_lengen.layers.attention.windows import (
    Window,
    join_keys,
    pack_tokens,
    split_keys,
    take_tokens,
)
from keras_lengen.types import Tensor

DIRECT_PAIRS = 2**22
"""Largest number of pairs of queries and keys that `"auto"` computes without
chunks."""

CHUNK_PAIRS = 2**21
"""Largest number of pairs of queries and keys in a chunk of `"auto"`."""

WINDOW_CHUNKS = (256, 1024)
"""Smallest and largest number of queries in a chunk of `"auto"` if chunks read
only the keys in a sliding window."""


class Computation(CachedKeys):
    """Base class of attention, with what it computes after the projections.

    Scores, their softmax and the weighted sums of the values are in `_attend`;
    `_attend_to_all` calls it for all queries or for chunks of them. Subclasses
    have the attributes that are options of scores, windows and chunks.
    """

    def _add_score_weights(self) -> None:
        """Creates the weights of the options of scores."""
        heads = self.num_heads
        if self.score_factor is not None:
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

    def _attend_to_all(
        self,
        rule: Rule,
        queries: Tensors,
        keys: Tensors,
        context: Context,
        return_weights: bool,
        training: bool | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Computes the attention of all queries, perhaps in chunks of them.

        Args:
            rule: `Rule`.
            queries: Dict of the resolved queries.
            keys: Dict of the resolved keys.
            context: `Context`.
            return_weights: bool, whether weights are wanted, for which there
                are no chunks.
            training: bool or `None`, whether to apply dropout.

        Returns:
            Weighted sums of the values `(B, T, H, value_dim)`, and the weights,
            float32 `(B, H, T, S)`, or `None`.
        """
        query, key = queries["query"], keys["key"]
        window = context.window
        ids, key_ids = context.document_ids or (None, None)
        queries = {
            **queries,
            "positions": context.positions,
            "indices": context.indices,
            "mask": context.attention_mask,
            "ranks": None if window is None else window.ranks,
            "documents": ids,
        }
        keys_and_values = {
            **keys,
            "positions": context.key_positions,
            "mask": context.key_mask,
            "ranks": None if window is None else window.key_ranks,
            "documents": key_ids,
        }
        if self.flash_attention:
            full = self._repeat(keys_and_values)
            call = Call(queries, full, context.visible or context.see(key))
            return attend_flash(
                rule.scores, call, context, return_weights
            ), None
        if is_fused(self, rule, query, key, context, return_weights):
            call = Call(queries, keys_and_values, context.see(key))
            return attend_fused(self, rule, call, context, training), None
        options: dict[str, Any] = {
            "rule": rule,
            "reach": context.reach,
            "training": training,
        }
        size = context.chunk_size
        if size is not None and not return_weights:
            chunks = (queries, keys_and_values, size, options)
            if window is not None and window.sliced:
                return self._attend_near(*chunks, window), None
            return self._attend_in_chunks(*chunks), None
        if context.chunk_size is None:
            keys_and_values["prepared"] = context.prepared
            options["visible"] = context.visible
        output, weights = self._attend(
            queries, self._repeat(keys_and_values), **options
        )
        if not return_weights:
            return output, None
        # Masks may hide all scores of an invalid query, but not these.
        marks = 0 * ops.transpose(query[..., :1], (0, 2, 1, 3))
        return output, weights + ops.cast(marks, "float32")

    def _attend_in_chunks(
        self,
        queries: Tensors,
        keys_and_values: Tensors,
        chunk_size: int,
        options: dict[str, Any],
        near: Tensors | None = None,
    ) -> Tensor:
        """Computes the attention of chunks of queries.

        Args:
            queries: As for `_attend`.
            keys_and_values: As for `_attend`, without repeated heads. If there
                is `near`, only those of the first tokens.
            chunk_size: int, number of queries in a chunk.
            options: Dict of further arguments of `_attend`.
            near: Dict of the keys and values near each chunk, or `None`.

        Returns:
            `(B, T, H, value_dim)`.
        """

        def attend(queries: Tensors, keys_and_values: Tensors) -> Tensor:
            if near is not None:
                queries, keys_and_values = join_keys(queries, keys_and_values)
                keys_and_values = self._repeat(keys_and_values)
            return self._attend(queries, keys_and_values, **options)[0]

        if near is None:
            # Once, and not once for each chunk.
            keys_and_values = self._repeat(keys_and_values)
        return attend_in_chunks(
            attend,
            queries,
            keys_and_values,
            chunk_size=chunk_size,
            shape=(self.num_heads, self.value_width),
            layer=self,
            generator=self._find_dropout_generator(options["training"]),
            near=near,
        )

    def _attend_near(
        self,
        queries: Tensors,
        keys_and_values: Tensors,
        chunk_size: int,
        options: dict[str, Any],
        window: Window,
    ) -> Tensor:
        """The same, where each chunk reads only the keys that it can see."""
        indices, moved = queries["indices"], None
        queries = {
            name: tensor
            for name, tensor in queries.items()
            if tensor is not None
            and name not in ("indices", "mask", "documents")
        }
        keys_and_values = {
            name: tensor
            for name, tensor in keys_and_values.items()
            if name not in ("mask", "documents")
        }
        if len(window.key_ranks.shape) == 2:
            real = window.key_ranks >= 0
            queries, moved = pack_tokens(queries, real)
            keys_and_values, _ = pack_tokens(keys_and_values, real)
            # Padding, now behind all real tokens, sees the last of them.
            queries["ranks"] = ops.arange(ops.shape(real)[1], dtype="int32")
        queries |= {"indices": indices, "mask": None}
        near, first = split_keys(
            keys_and_values,
            size=cast(int, self.sliding_window),
            sink_tokens=self.sink_tokens,
            chunk_size=chunk_size,
            causal=options["reach"].causal,
        )
        output = self._attend_in_chunks(
            queries, first, chunk_size, options, near
        )
        return output if moved is None else take_tokens(output, moved)

    def _attend(
        self,
        queries: Tensors,
        keys_and_values: Tensors,
        *,
        rule: Rule,
        reach: Reach,
        training: bool | None,
        visible: Visibility | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Computes the attention of some queries to all keys.

        Args:
            queries: Dict, as `queries` of a `Call`, with a boolean `"mask"`
                `(1 or B, 1 or H, T, S)` or `None`, and, with a sliding window,
                their `"ranks"`, int32 `(T,)` or `(B, T)`; and their
                `"documents"`, int32 `(B, T)`, or `None`.
            keys_and_values: Dict, as `keys` of a `Call`, with heads for all
                queries, and, with a sliding window, their `"ranks"`; and their
                `"documents"`, as those of the queries.
            rule: `Rule`.
            reach: `Reach`.
            training: bool or `None`, whether to apply dropout.
            visible: `Visibility`; `None` to find it.

        Returns:
            Weighted sums of the values `(B, T, H, value_dim)`, and the weights,
            float32 `(B, H, T, S)`.
        """
        if visible is None:
            visible = _find_visible(reach, queries, keys_and_values)
        scores = rule.scores(Call(queries, keys_and_values, visible))
        weights = rule.weights(scores, visible)
        if self._replaces_gradient(rule.weights, scores, training):
            shown = hide_scores(scores, visible.mask())
            value = keys_and_values["value"]
            return sum_values(shown, weights, value), weights
        dropped = weights
        if self.dropout:
            dropped = self.dropout_layer(weights, training=training)
        dropped = ops.cast(dropped, self.compute_dtype)
        output = ops.einsum(
            "bhts,bshd->bthd", dropped, keys_and_values["value"]
        )
        return output, weights

    def find_reach(self, causal: bool) -> Reach:
        """Finds which keys queries see by their numbers.

        Args:
            causal: bool, whether queries attend to no later keys.
        """
        return Reach(causal, self.sliding_window, self.sink_tokens)

    def make_rule(self, training: bool | None) -> Rule:
        """Makes the rule by which a call computes weights."""
        return Rule(
            self.make_entries(), self.make_scores(training), self.make_weights()
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
            heads = self.num_key_value_heads or self.num_heads
            entries.append(RotationBySteps(encoding, heads, self.key_dim))
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
        if self.score_factor is not None:
            factors.append(FACTORS[self.score_factor](self.factor))
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

    def _replaces_gradient(
        self, weights: WeightRule, scores: Tensor, training: bool | None
    ) -> bool:
        """Whether `sum_values` computes the output and its gradient."""
        return (
            weights.is_plain
            and bool(training)
            and is_tensorflow_graph()
            and self.compute_dtype == "float32"
            and not self.dropout
            and scores.shape[-1] != 1
        )

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

    def _find_dropout_generator(
        self, training: bool | None
    ) -> keras.random.SeedGenerator | None:
        """Finds the generator of the dropout, or `None` without dropout."""
        if not (training and self.dropout):
            return None
        return self.dropout_layer.seed_generator

    def _repeat(self, keys_and_values: Tensors) -> Tensors:
        """Repeats heads of keys and values, to one for each query head."""
        return {
            name: tensor
            if name in _WITHOUT_HEADS
            else repeat_heads(tensor, self.num_heads)
            for name, tensor in keys_and_values.items()
        }


_WITHOUT_HEADS = ("positions", "mask", "ranks", "documents", "prepared")
"""Names of what is known of keys beside tensors `(B, S, heads, width)`."""


def _find_visible(
    reach: Reach, queries: Tensors, keys_and_values: Tensors
) -> Visibility:
    """Finds the keys that some queries see, from the tensors of `_attend`."""
    documents = queries.get("documents"), keys_and_values.get("documents")
    ranks = queries["ranks"], keys_and_values["ranks"]
    return find_visible(
        reach,
        queries["indices"],
        ops.shape(keys_and_values["key"])[1],
        None if ranks[0] is None else ranks,
        padding=keys_and_values.get("mask"),
        given=queries["mask"],
        documents=None if documents[0] is None else documents,
    ).join()


def repeat_heads(features: Tensor, heads: int) -> Tensor:
    """Repeats the heads of `(B, S, heads that divide it, width)`."""
    groups = heads // features.shape[2]
    return features if groups == 1 else ops.repeat(features, groups, axis=2)
