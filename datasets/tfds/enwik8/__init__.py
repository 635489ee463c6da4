"""enwik8 for TensorFlow Datasets."""
