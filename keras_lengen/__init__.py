"""Positional encodings and position samplers for length generalization."""

from keras_lengen import analysis, evaluation, layers, models, retrofit

__version__ = "0.1.0"

__all__ = ["analysis", "evaluation", "layers", "models", "retrofit"]
