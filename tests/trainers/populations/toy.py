"""Flags of a small population."""

from tests.trainers import toy

TOY = {
    **{name: toy.TOY[name] for name in toy.TOY if name != "strategy"},
    "encoding": "RandomizedRelativeEncoding",
    "train_length": "1-4",
    "test_lengths": "6",
    "evaluation_examples": 20,
    "steps": 4,
}
