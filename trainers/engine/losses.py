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


def sum_counted(values, counted):
    """Returns the sum of the values that count, and their number, float32.

    Args:
        values: Numeric or boolean tensor, of any shape.
        counted: Boolean tensor of that shape.
    """
    values = ops.where(counted, ops.cast(values, "float32"), 0.0)
    return ops.sum(values), ops.sum(ops.cast(counted, "float32"))


def sum_answer_losses(outputs, batch):
    """Returns the sum of the losses at empty tokens, and their number.

    Args:
        outputs: Logits `(B, P, classes)`.
        batch: Dict in the format of `datasets.tasks.batches.assemble`.
    """
    losses = cross_entropies(outputs, batch["targets"])
    return sum_counted(losses, batch["answer"])


def sum_answer_metrics(outputs, batch):
    """Returns the sums of accuracy, exact match and loss, each with its number.

    Args:
        outputs: Logits `(B, P, classes)`.
        batch: Dict in the format of `datasets.tasks.batches.assemble`, with
            `"used"`, bool `(B,)`: whether an example counts.

    Returns:
        float32 tensor `(6,)`.
    """
    used, targets = batch["used"], batch["targets"]
    hits = ops.argmax(outputs, axis=-1) == targets
    wrong = ops.any(~hits & batch["scored"], axis=-1)
    losses = cross_entropies(outputs, targets)
    return ops.stack(
        [
            *sum_counted(hits, batch["scored"] & used[:, None]),
            *sum_counted(~wrong, used),
            *sum_counted(losses, batch["answer"] & used[:, None]),
        ]
    )
