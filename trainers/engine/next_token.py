"""Problems of predicting the next token of a sequence."""

import math

import numpy as np
from keras import ops

from trainers.engine.losses import cross_entropies, sum_counted
from trainers.engine.problem import Problem

POSITIONS = 64
"""Most positions of a window that the loss is reported at."""


class NextTokenProblem(Problem):
    """The next token of a window, predicted from the tokens before it.

    A batch has `"token_ids"` and `"targets"`, int32 `(B, T)`, and `"scored"`,
    bool `(B, T)`: whether the loss of a position counts. A subclass gives the
    batches and says by `convert` what it measures.
    """

    def inputs(self, batch):
        # No token attends to the padding after it.
        return {"token_ids": batch["token_ids"]}

    def loss(self, outputs, batch):
        losses = cross_entropies(outputs, batch["targets"])
        return sum_counted(losses, batch["scored"])

    def sums(self, outputs, batch):
        scored = batch["scored"] & batch["used"][:, None]
        losses = cross_entropies(outputs, batch["targets"])
        losses = ops.where(scored, losses, 0.0)
        counts = ops.sum(ops.cast(scored, "float32"), axis=-1)
        means = ops.sum(losses, axis=-1) / ops.maximum(counts, 1.0)
        windows = ops.sum(ops.cast(counts > 0, "float32"))
        totals = [ops.sum(means), ops.sum(means**2), windows]
        by_position = [ops.sum(losses, axis=0), ops.sum(scored, axis=0)]
        return ops.concatenate(
            [ops.stack(totals), *(ops.cast(n, "float32") for n in by_position)]
        )

    def convert(self, nats, tokens):
        """Returns the metrics that follow from a mean loss.

        Args:
            nats: float. Mean cross-entropy of a token, in nats.
            tokens: int. Number of tokens of a window.

        Returns:
            `{metric: value}`, the first metric first.
        """
        raise NotImplementedError

    def measure(self, sums):
        means, squares, windows = sums[:3].tolist()
        losses, counts = np.split(sums[3:], 2)
        nats = float(losses.sum() / counts.sum())
        tokens = int(np.count_nonzero(counts))
        variance = max(squares / windows - (means / windows) ** 2, 0.0)
        # The 95% interval for the mean of a normal distribution.
        half = 1.96 * math.sqrt(variance / windows)
        found = self.convert(nats, tokens)
        first = self.metrics[0].name
        low, high = (
            self.convert(bound, tokens)[first]
            for bound in (nats - half, nats + half)
        )
        return {f"{first}_low": low, f"{first}_high": high, **found}

    def measure_positions(self, sums):
        losses, counts = np.split(sums[3:], 2)
        length = np.count_nonzero(counts)
        edges = np.arange(0, length, -(-length // POSITIONS))
        losses, counts = (
            np.add.reduceat(values[:length], edges)
            for values in (losses, counts)
        )
        first = self.metrics[0].name
        return {
            position: self.convert(nats, length)[first]
            for position, nats in zip(
                edges.tolist(), (losses / counts).tolist(), strict=True
            )
        }
