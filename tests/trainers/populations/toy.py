"""Flags of a small population."""

TOY = {
    "task": "reverse_string",
    "encoding": "RandomizedRelativeEncoding",
    "num_layers": 1,
    "num_heads": 2,
    "model_dim": 8,
    "batch_size": 8,
    "train_length": "1-4",
    "test_lengths": "6",
    "buckets": 1,
    "evaluation_examples": 20,
    "steps": 4,
    "max_position": 32,
}
