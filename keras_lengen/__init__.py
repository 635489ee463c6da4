"""Positional encodings and position samplers for length generalization."""

from keras_lengen import analysis, layers, models, retrofit

__version__ = "0.1.0"

__all__ = ["analysis", "layers", "models", "retrofit"]
