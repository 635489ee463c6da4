"""Base class of the encodings that are added to the embeddings."""

from typing import TYPE_CHECKING, Any

from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.types import InputShape, Shape, Size, Tensor, TensorLike


class AbsoluteEncoding(PositionalEncoding):
    """Base class of encodings that are added to the embeddings.

    Subclasses implement `add_to_embeddings`. Called as a layer, the encoding
    takes and returns embeddings `(B, T, M)`. The call argument `mask` is a
    boolean tensor `(B, T)`, true for real tokens.
    """

    stage = "embeddings"
    query_ranks = (3,)

    if TYPE_CHECKING:

        def __call__(
            self,
            embeddings: TensorLike,
            *,
            positions: TensorLike | None = None,
            start_index: Size = 0,
            training: bool | None = None,
            mask: TensorLike | None = None,
        ) -> Tensor: ...

    def build(self, query_shape: InputShape) -> None:
        super().build(query_shape)

    def call(
        self,
        embeddings: TensorLike,
        *,
        positions: TensorLike | None = None,
        start_index: Size = 0,
        training: bool | None = None,
        mask: TensorLike | None = None,
    ) -> Tensor:
        self._check(embeddings, embeddings)
        positions = self._find_positions(
            embeddings, positions, start_index, mask, training
        )
        return self.add_to_embeddings(self._cast(embeddings), positions)

    def compute_output_spec(
        self,
        embeddings: Tensor,
        positions: TensorLike | None = None,
        **kwargs: Any,
    ) -> Any:
        return super().compute_output_spec(embeddings, positions=positions)

    def compute_output_shape(self, embeddings_shape: Shape) -> Shape:
        return super().compute_output_shape(embeddings_shape)
