"""Problems of finding the class of a sequence."""

from keras import ops

from trainers.engine.losses import cross_entropies, sum_counted
from trainers.engine.problem import Metric, Problem


class ClassificationProblem(Problem):
    """The class of a whole sequence.

    A batch has `"token_ids"`, int32 `(B, T)`, and `"targets"`, int32 `(B,)`,
    the classes. The logits of a sequence are the mean of those of its output
    tokens, which may be a single one. A subclass gives the batches.
    """

    metrics = (
        Metric("accuracy"),
        Metric("top_5_accuracy"),
        Metric("loss", "nats", higher_is_better=False),
    )

    examples_sum = 1

    def logits(self, outputs):
        """Returns the logits of sequences, float32 `(B, classes)`.

        Args:
            outputs: Outputs of the model, `(B, T, classes)`.
        """
        return ops.mean(ops.cast(outputs, "float32"), axis=1)

    def loss(self, outputs, batch):
        losses = cross_entropies(self.logits(outputs), batch["targets"])
        return sum_counted(losses, ops.ones_like(losses, dtype="bool"))

    def sums(self, outputs, batch):
        logits, targets = self.logits(outputs), batch["targets"]
        best = ops.top_k(logits, min(5, logits.shape[-1]))[1]
        hits = ops.cast(best, "int32") == targets[:, None]
        losses = cross_entropies(logits, targets)
        counted = batch["used"]
        return ops.stack(
            [
                *sum_counted(hits[:, 0], counted),
                *sum_counted(ops.any(hits, axis=-1), counted),
                *sum_counted(losses, counted),
            ]
        )
