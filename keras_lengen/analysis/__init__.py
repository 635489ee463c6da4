"""Analysis of encodings and samplers without training a model."""

from keras_lengen.analysis.attention_sensitivity import (
    alibi_raw_attention,
    attention_sensitivity,
    rope_raw_attention,
    total_difference,
)
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
    "attention_sensitivity",
    "distance_coverage",
    "phase_coverage",
    "plot_coverage",
    "position_coverage",
    "rope_raw_attention",
    "total_difference",
]
