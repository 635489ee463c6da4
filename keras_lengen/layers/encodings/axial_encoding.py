"""Two encodings in one: of rows and of columns."""

import keras
from keras import ops

from keras_lengen.layers.encodings.base import PositionalEncoding


@keras.saving.register_keras_serializable(package="keras_lengen")
class AxialEncoding(PositionalEncoding):
    """Encodes the row of a token in one half, and its column in the other.

    The two encodings act at one stage, each with half of what there is:
    features of the embeddings, features of every head where they rotate, heads
    where they bias the scores. The first half belongs to the rows.

    Stage: that of the two encodings.
    Positions: a pair of tensors, rows and columns, as `GridPositions` gives
    them, each `(T,)` or `(B, T)`.

    Args:
        row: `PositionalEncoding` of the rows.
        column: `PositionalEncoding` of the columns, of the same stage.
        sampler: `PositionSampler` of pairs. The samplers of `row` and
            `column` are not used.

    Raises:
        ValueError: If the stages differ, the width or the number of heads is
            odd, or positions are not pairs.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import AxialEncoding, GridPositions, RoPE
    >>> encoding = AxialEncoding(
    ...     row=RoPE(), column=RoPE(), sampler=GridPositions(width=5))
    >>> encoding(ops.ones((2, 20, 4, 8))).shape
    TensorShape([2, 20, 4, 8])

    Reference: Ho et al., 2019, section 3 (positions of every axis of their
    own). https://arxiv.org/abs/1912.12180
    """

    def __init__(self, *, row, column, **kwargs):
        super().__init__(**kwargs)
        if row.stage is None or row.stage != column.stage:
            raise ValueError(
                "row and column must be encodings of one stage; got "
                f"{type(row).__name__} ({row.stage}) and "
                f"{type(column).__name__} ({column.stage})."
            )
        self.row = row
        self.column = column
        self.stage = row.stage
        self.share_layers = row.share_layers and column.share_layers
        self.causal_only = row.causal_only or column.causal_only
        self.uses_length = row.uses_length or column.uses_length
        self.defined_past_training = (
            row.defined_past_training and column.defined_past_training
        )

    @property
    def _axis(self):
        """The axis that is halved: heads, or features."""
        return 2 if self.stage == "bias" else -1

    def build(self, query_shape, key_shape=None):
        shapes = []
        for shape in (query_shape, key_shape or query_shape):
            shape = list(shape)
            if shape[self._axis] % 2:
                raise ValueError(
                    f"rows and columns cannot share {shape[self._axis]} "
                    f"{'heads' if self.stage == 'bias' else 'features'} "
                    "equally: choose an even number."
                )
            shape[self._axis] //= 2
            shapes.append(tuple(shape))
        for encoding in (self.row, self.column):
            if not encoding.built:
                encoding.build(*shapes[: 1 if key_shape is None else 2])

    def call(
        self,
        query,
        key=None,
        *,
        positions=None,
        key_positions=None,
        start_index=0,
        causal=False,
        length=None,
        training=None,
        mask=None,
    ):
        if positions is None:
            positions = self.sample_positions(
                query, start_index=start_index, mask=mask, training=training
            )
        if self.stage == "embeddings":
            return self.add_to_embeddings(query, positions)
        pair = (query, query if key is None else key)
        key_positions = positions if key_positions is None else key_positions
        if self.stage == "bias":
            return self.attention_bias(
                *pair, positions, key_positions, causal=causal
            )
        pair = self.rotate(*pair, positions, key_positions, length=length)
        return pair[0] if key is None else pair

    def add_to_embeddings(self, embeddings, positions):
        halves = zip(
            (self.row, self.column),
            self._halves(embeddings),
            _pair(positions),
            strict=True,
        )
        return ops.concatenate(
            [
                encoding.add_to_embeddings(half, half_positions)
                for encoding, half, half_positions in halves
            ],
            axis=-1,
        )

    def rotate(
        self, query, key, query_positions, key_positions, *, length=None
    ):
        if self.stage != "rotation":
            return query, key
        rotated = [
            encoding.rotate(*half, length=length)
            for encoding, *half in self._of_pairs(
                query, key, query_positions, key_positions
            )
        ]
        return tuple(
            ops.concatenate(halves, axis=-1)
            for halves in zip(*rotated, strict=True)
        )

    def attention_bias(
        self, query, key, query_positions, key_positions, *, causal=False
    ):
        if self.stage != "bias":
            return None
        biases = [
            encoding.attention_bias(*half, causal=causal)
            for encoding, *half in self._of_pairs(
                query, key, query_positions, key_positions
            )
        ]
        # One may be the same for the whole batch, or for all heads.
        shape = (
            ops.shape(query)[0],
            query.shape[2] // 2,
            ops.shape(query)[1],
            ops.shape(key)[1],
        )
        return ops.concatenate(
            [ops.broadcast_to(bias, shape) for bias in biases], axis=1
        )

    def _halves(self, tensor):
        return ops.split(tensor, 2, axis=self._axis)

    def _of_pairs(self, query, key, query_positions, key_positions):
        """For rows and columns: encoding and arguments of its stage."""
        return zip(
            (self.row, self.column),
            self._halves(query),
            self._halves(key),
            _pair(query_positions),
            _pair(key_positions),
            strict=True,
        )

    def get_config(self):
        return {
            **super().get_config(),
            "row": keras.saving.serialize_keras_object(self.row),
            "column": keras.saving.serialize_keras_object(self.column),
        }

    @classmethod
    def from_config(cls, config):
        encodings = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in ("row", "column")
        }
        return super().from_config({**config, **encodings})


def _pair(positions):
    """Positions of rows and columns, or `ValueError`."""
    if not isinstance(positions, (tuple, list)) or len(positions) != 2:
        raise ValueError(
            "AxialEncoding needs positions of rows and of columns: give it "
            "sampler=GridPositions(width=...), or pass a pair."
        )
    return positions
