"""Programs that train: run them as `python -m trainers.<name>`."""

from trainers import start

# Before anything else is imported, and only for a program.
start.begin()

EXPERIMENTS = {
    "algorithmic": "trainers.algorithmic",
    "enwik8": "trainers.enwik8",
    "examples": "trainers.examples",
    "imagenet": "trainers.imagenet",
    "sequence_to_answer": "trainers.sequence_to_answer",
    "wikitext103": "trainers.wikitext103",
}
"""The modules that have an `EXPERIMENT`, by its name."""
