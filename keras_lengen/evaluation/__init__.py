"""Metrics of any Keras model at many lengths."""

from keras_lengen.evaluation.evaluate import evaluate_by_length
from keras_lengen.evaluation.intervals import Estimate, wilson_interval
from keras_lengen.evaluation.length_sweep import LengthSweep
from keras_lengen.evaluation.results import LengthResults

__all__ = [
    "Estimate",
    "LengthResults",
    "LengthSweep",
    "evaluate_by_length",
    "wilson_interval",
]
