"""Data sets for the trainers, as `tf.data` pipelines."""
