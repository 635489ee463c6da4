"""New positions for models that add rows of a table to the embeddings."""

from typing import Any

import keras
from keras import ops

from keras_lengen.checks.guards import guard, is_integer
from keras_lengen.checks.inputs import describe_range, find_static_size
from keras_lengen.layers.attention.cache import find_new_positions
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.encodings.copies import copy_encoding
from keras_lengen.layers.encodings.learned_encoding import LearnedEncoding
from keras_lengen.retrofit.changes import Changes
from keras_lengen.retrofit.families import TableFamily
from keras_lengen.retrofit.shared_positions import SharedPositions
from keras_lengen.types import Positions, Size, Tensor


def change_embedding(
    changes: Changes,
    family: TableFamily,
    backbone: Any,
    shared: SharedPositions,
    encoding: PositionalEncoding | None,
    table: str,
) -> None:
    """Changes the layer of a backbone that adds positions.

    Args:
        changes: `Changes` that gets the replaced methods.
        family: `TableFamily` of the backbone.
        backbone: Backbone of KerasHub.
        shared: `SharedPositions`.
        encoding: Encoding in place of the backbone's own table, or `None` to
            keep it.
        table: str, how a new table begins, as for `RetrofittedModel`.
    """
    embedding = family.find_embedding(backbone)
    rows = getattr(embedding, family.table)
    own = None
    if encoding is not None:
        own = copy_encoding(encoding, default_sampler=True)
        own.build((None, None, rows.shape[-1]))
        if isinstance(own, LearnedEncoding):
            own.table.assign(make_table(rows, own.max_position, table))
    elif getattr(shared.sampler, "max_position", 0) > rows.shape[0]:
        reach = shared.sampler.max_position
        raise ValueError(
            f"the sampler has max_position={reach}, but the table of the "
            f"{type(backbone).__name__} has {rows.shape[0]} rows: give it "
            f"encoding=LearnedEncoding(max_position={reach}), which extends "
            "the table."
        )
    if own is not None:
        changes.freeze(rows)
    changes.attach(embedding, [shared] if own is None else [shared, own])
    patch = TablePatch(family, embedding, shared, own)
    changes.replace(embedding, "call", patch.call)


def make_table(rows: Any, count: int, table: str) -> Tensor:
    """Makes a table of other length from that of a trained model.

    Args:
        rows: Table `(N, M)`.
        count: int, number of rows of the new table.
        table: str. `"interpolated"`: linearly, so that the first and the last
            rows stay. `"tiled"`: the rows again and again. `"initialized"`:
            the rows, and then normally distributed ones, with the mean and
            standard deviation of the rows.

    Returns:
        float32 `(count, M)`.
    """
    rows = ops.convert_to_tensor(rows)
    trained = rows.shape[0]
    indices = ops.arange(count, dtype="int32")
    if table == "tiled":
        return ops.take(rows, indices % trained, axis=0)
    if table == "interpolated":
        step = (trained - 1) / max(count - 1, 1)
        return _read_rows(rows, ops.cast(indices, "float32") * step)
    new = max(count - trained, 0)
    drawn = keras.random.normal(
        (new, rows.shape[1]), ops.mean(rows), ops.std(rows), dtype="float32"
    )
    return ops.concatenate([rows[:count], drawn], axis=0)


class TablePatch:
    """Gives the positions of a sampler to a layer that adds rows of a table.

    Args:
        family: `TableFamily` of the backbone.
        embedding: Built layer with the table.
        shared: `SharedPositions`.
        encoding: Built encoding of the embeddings, or `None` for the layer's
            own table.
    """

    def __init__(
        self,
        family: TableFamily,
        embedding: Any,
        shared: SharedPositions,
        encoding: PositionalEncoding | None,
    ) -> None:
        self.family = family
        self.embedding = embedding
        self.shared = shared
        self.encoding = encoding
        self._tokens: int | None = None

    def call(
        self,
        inputs: Tensor,
        start_index: Size = 0,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Computes the vectors to be added, in place of the layer's `call`.

        Args:
            inputs: Embeddings `(B, T, M)`; only the shape is read.
            start_index: Index of the first token in the whole sequence.
            positions: Positions `(T,)` or `(B, T)` that the caller gives, or
                `None` for those of the sampler.

        Returns:
            `(B, T, M)`.
        """
        if positions is None:
            positions = self._find_positions(inputs, start_index)
        if self.encoding is not None:
            return self.encoding.add_to_embeddings(
                ops.zeros_like(inputs), positions
            )
        table = ops.convert_to_tensor(
            getattr(self.embedding, self.family.table)
        )
        rows = table.shape[0]
        positions = guard(
            positions,
            _are_inside(positions, rows),
            f"positions must be at least 0 and below {rows}, the number of "
            "rows of the model's table; got numbers from ",
            *describe_range(positions),
            ": give it encoding=LearnedEncoding(max_position=...), which "
            "extends the table.",
        )
        # A compiled program has no errors: NaN shows the wrong positions.
        inside = _are_inside(positions, rows)
        vectors = _read_rows(table, ops.where(inside, positions, 0))
        vectors = ops.where(ops.expand_dims(inside, -1), vectors, float("nan"))
        return ops.broadcast_to(vectors, ops.shape(inputs))

    def _find_positions(self, inputs: Tensor, start_index: Size) -> Positions:
        current = self.shared.find_pass()
        if current is not None:
            return current.positions
        tokens = find_static_size(ops.shape(inputs)[1])
        if isinstance(start_index, int) and start_index == 0:
            # Generation begins with the whole, padded sequence.
            self._tokens = tokens
            return self.shared.sample_steps(inputs)
        if self._tokens is None:
            raise ValueError(
                "the positions of new tokens depend on the length of the whole "
                "sequence: generate from a sequence that is padded to the "
                "length of prompt and answer, and compute its cache first."
            )
        whole = ops.zeros((ops.shape(inputs)[0], self._tokens), "int32")
        return find_new_positions(
            self.shared.sample_steps(whole), start_index, inputs
        )


def _are_inside(positions: Positions, rows: int) -> Tensor:
    return ops.logical_and(positions >= 0, positions < rows)


def _read_rows(table: Tensor, positions: Positions) -> Tensor:
    """Reads rows of a table, or points on the lines between two of them.

    Positions after the last row read the last row.
    """
    if is_integer(positions):
        return ops.take(table, positions, axis=0)
    below = ops.floor(positions)
    share = ops.cast(ops.expand_dims(positions - below, -1), table.dtype)
    first = ops.cast(below, "int32")
    last = ops.minimum(first + 1, table.shape[0] - 1)
    return (1 - share) * ops.take(table, first, axis=0) + share * ops.take(
        table, last, axis=0
    )
