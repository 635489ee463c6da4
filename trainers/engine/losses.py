"""Losses and sums over batches, for problems to use."""

from keras import ops


def cross_entropies(logits, targets):
    """Returns the cross-entropy in nats of every output, float32.

    Args:
        logits: Float tensor `(..., classes)`.
        targets: Integer tensor `(...)`, the correct classes.
    """
    return ops.sparse_categorical_crossentropy(
        targets, ops.cast(logits, "float32"), from_logits=True
    )


def summed(values, counted):
    """Returns the sum of the values that count, and their number, float32.

    Args:
        values: Numeric or boolean tensor, of any shape.
        counted: Boolean tensor of that shape.
    """
    values = ops.where(counted, ops.cast(values, "float32"), 0.0)
    return ops.sum(values), ops.sum(ops.cast(counted, "float32"))
