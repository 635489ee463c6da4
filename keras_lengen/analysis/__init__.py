"""Analysis of encodings, samplers and models, without training."""

from keras_lengen.analysis.activation_plane import (
    ActivationPlane,
    fit_activation_plane,
)
from keras_lengen.analysis.attention_patterns import (
    attention_distance,
    attention_divergence,
    attention_maximum,
)
from keras_lengen.analysis.attention_sensitivity import (
    alibi_raw_attention,
    attention_sensitivity,
    rope_raw_attention,
    total_difference,
)
from keras_lengen.analysis.attention_weights import attention_weights
from keras_lengen.analysis.block_activations import block_activations
from keras_lengen.analysis.position_coverage import (
    Coverage,
    distance_coverage,
    phase_coverage,
    plot_coverage,
    position_coverage,
)

__all__ = [
    "ActivationPlane",
    "Coverage",
    "alibi_raw_attention",
    "attention_distance",
    "attention_divergence",
    "attention_maximum",
    "attention_sensitivity",
    "attention_weights",
    "block_activations",
    "distance_coverage",
    "fit_activation_plane",
    "phase_coverage",
    "plot_coverage",
    "position_coverage",
    "rope_raw_attention",
    "total_difference",
]
