"""The problem of predicting the next item of a text: a byte or a token."""

import functools
import math

import numpy as np
from keras import ops

from datasets.curricula import Uniform
from datasets.tasks.batches import length_at
from datasets.text import CorpusError, batches
from keras_lengen.evaluation.intervals import Z
from trainers.engine.losses import cross_entropies, sum_counted
from trainers.engine.problem import Problem
from trainers.errors import ConfigError, DataError, as_config_errors

POSITIONS = 64
"""Most positions of a window that the loss is reported at."""


class TextProblem(Problem):
    """The next item of a window of a text, predicted from the items before it.

    A batch has `"token_ids"` and `"targets"`, int32 `(B, T)`, and `"scored"`,
    bool `(B, T)`: whether the loss of a position counts. A subclass returns the
    splits of the text from `open`, and by `convert` says what it measures.
    Evaluations at all lengths read the same items of the text. `hint` follows
    the message if the text cannot be opened. `vocabulary` is `None` where it
    comes with the text.
    """

    hint = ""
    vocabulary = None

    def prepare(self):
        with as_config_errors(CorpusError, becomes=DataError):
            self._prepare()

    def _prepare(self):
        needed = {"train": self.longest_trained, self.config.split: 1}
        for split, tokens in needed.items():
            if len(self.splits[split]) < tokens:
                raise ConfigError(
                    f"the text has {len(self.splits[split])} tokens in split "
                    f"{split}, fewer than {tokens}: choose a longer text."
                )
        self.keep_digest(self.splits.values())

    @functools.cached_property
    def splits(self):
        """Dict from the name of a split to its `Corpus`."""
        try:
            return self.open()
        except CorpusError as error:
            raise DataError(f"{error}{self.hint}") from None

    @property
    def _evaluated(self):
        most = self.config.evaluation_examples * self.lengths[-1]
        corpus = self.splits[self.config.split]
        return {"corpus": corpus, "most": most, "stride": self.config.stride}

    def training_batches(self, **steps):
        return batches.training_dataset(
            self.splits["train"],
            length_at=self.tokens_at,
            batch_size=self.config.batch_size,
            seed=self.config.seed,
            **steps,
        )

    def tokens_at(self, step):
        lengths = self.config.trained_lengths
        return length_at(self.config.seed, step, lengths, Uniform())

    def evaluation_examples(self, length):
        return batches.count_windows(length=length, **self._evaluated)

    def evaluation_batch(self, **which):
        return batches.evaluation_batch(**which, **self._evaluated)

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
        half = Z * math.sqrt(variance / windows)
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
