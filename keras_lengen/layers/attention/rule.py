"""Rules of attention: how queries and keys give weights."""

import dataclasses

from keras_lengen.layers.attention.chunks import Tensors
from keras_lengen.layers.attention.inputs import Context
from keras_lengen.layers.attention.parts import Part
from keras_lengen.layers.attention.scores import ScoreRule
from keras_lengen.layers.attention.weights import WeightRule
from keras_lengen.types import Tensor


@dataclasses.dataclass(frozen=True, eq=False)
class Rule:
    """What a layer computes weights by, in one call.

    Attributes:
        scores: `ScoreRule`.
        weights: `WeightRule`.
    """

    scores: ScoreRule
    weights: WeightRule

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts."""
        return (*self.scores.parts, self.weights)

    def prepare(self, inputs: Tensor, context: Context) -> Tensors:
        """Computes what the parts read of queries; see `Part.prepare`."""
        prepared: Tensors = {}
        for part in self.parts:
            prepared |= part.prepare(inputs, context)
        return prepared

    def obstacle(self) -> str | None:
        """Says why the fused kernels cannot compute the rule, if so."""
        return next(
            filter(None, (part.obstacle() for part in self.parts)), None
        )
