"""Labelled sequences from files, TensorFlow Datasets or functions."""

from datasets.labelled.rows import BAD_LINES, LabelledError
from datasets.labelled.tokens import TOKENS
from datasets.labelled.writer import KINDS

__all__ = ["BAD_LINES", "KINDS", "TOKENS", "LabelledError"]
