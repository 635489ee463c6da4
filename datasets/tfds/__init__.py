"""Data sets that `tfds build` prepares."""
