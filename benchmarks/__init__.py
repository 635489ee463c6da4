"""Measurements against peers: run them as `python -m benchmarks.<name>`."""

import trainers  # noqa: F401, lets programs start without TensorFlow's notes.
