"""How many programs an evaluation makes, and how many examples fit."""

PROGRAMS = 10
"""Largest number of padded lengths that an evaluation computes."""

PAIRS = 2**24
"""Largest number of pairs of tokens of a batch, so that it fits in memory."""


def split_examples(examples, padded_length, replicas):
    """Returns the number of batches, and the examples of each for a replica.

    Args:
        examples: Number of examples to evaluate.
        padded_length: Number of tokens of each.
        replicas: Number of replicas that share a batch.
    """
    most = max(1, PAIRS // padded_length**2 // replicas)
    batches = -(-examples // (most * replicas))
    return batches, -(-examples // (batches * replicas))
