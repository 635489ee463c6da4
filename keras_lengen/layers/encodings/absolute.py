"""Base class of the encodings that are added to the embeddings."""

from keras_lengen.layers.encodings.base import PositionalEncoding


class AbsoluteEncoding(PositionalEncoding):
    """Base class of encodings that are added to the embeddings.

    Subclasses implement `add_to_embeddings`. Called as a layer, the encoding
    takes and returns embeddings `(B, T, M)`. The call argument `mask` is a
    boolean tensor `(B, T)`, true for real tokens.
    """

    stage = "embeddings"
    query_ranks = (3,)

    def build(self, query_shape):
        super().build(query_shape)

    def call(
        self,
        embeddings,
        *,
        positions=None,
        start_index=0,
        training=None,
        mask=None,
    ):
        self._check(embeddings, embeddings)
        positions = self._find_positions(
            embeddings, positions, start_index, mask, training
        )
        return self.add_to_embeddings(self._cast(embeddings), positions)

    def compute_output_spec(self, embeddings, positions=None, **kwargs):
        return super().compute_output_spec(embeddings, positions=positions)

    def compute_output_shape(self, embeddings_shape):
        return super().compute_output_shape(embeddings_shape)
