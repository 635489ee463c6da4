"""Analysis of encodings, samplers and models, without training."""

from keras_lengen.analysis.attention_patterns import (
    attention_distance,
    attention_divergence,
)
from keras_lengen.analysis.attention_sensitivity import (
    alibi_raw_attention,
    attention_sensitivity,
    rope_raw_attention,
    total_difference,
)
from keras_lengen.analysis.attention_weights import attention_weights
from keras_lengen.analysis.position_coverage import (
    Coverage,
    distance_coverage,
    phase_coverage,
    plot_coverage,
    position_coverage,
)

__all__ = [
    "Coverage",
    "alibi_raw_attention",
    "attention_distance",
    "attention_divergence",
    "attention_sensitivity",
    "attention_weights",
    "distance_coverage",
    "phase_coverage",
    "plot_coverage",
    "position_coverage",
    "rope_raw_attention",
    "total_difference",
]
