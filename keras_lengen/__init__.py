"""Positional encodings and position sampling for length generalization."""

from keras_lengen import analysis, layers, models

__version__ = "0.1.0"

__all__ = ["analysis", "layers", "models"]
