"""An experiment of its own: two sequences, and a loss that should be low."""

import dataclasses

import tensorflow as tf
from keras import ops

from datasets.indexed import indexed_dataset
from datasets.seeds import fold_in
from keras_lengen.models import EncoderDecoder
from trainers.engine.losses import cross_entropies, sum_counted
from trainers.engine.problem import Metric, Problem
from trainers.experiment import Experiment
from trainers.options.fields import LengthsConfig, option
from trainers.options.layers import model_arguments


@dataclasses.dataclass(frozen=True)
class CopyConfig(LengthsConfig):
    """Flags of this trainer."""

    symbols: int = option(3, "Number of symbols.", changes_program=True)


class CopyProblem(Problem):
    """The target is the source, one token later."""

    title = "copy"
    metrics = (Metric("nats_per_symbol", "nats", higher_is_better=False),)

    def _draw(self, seed, size, length, padded_length):
        symbols = tf.random.stateless_uniform(
            (size, padded_length), seed, 1, self.config.symbols, tf.int32
        )
        inside = tf.range(padded_length) < length
        source = tf.where(inside, symbols, 0)
        target = tf.pad(source[:, :-1], [[0, 0], [1, 0]])
        inside = tf.broadcast_to(inside, tf.shape(source))
        return {"source": source, "target": target, "inside": inside}

    def training_batches(self, *, padded_length, **steps):
        def draw(step, number, size):
            seed = fold_in(self.config.seed, step, number)
            return self._draw(seed, size, self.tokens_at(step), padded_length)

        size = self.config.batch_size
        return indexed_dataset(draw, batch_size=size, **steps)

    def tokens_at(self, step):
        return tf.constant(self.longest_trained) - tf.cast(step % 2, tf.int32)

    def evaluation_batch(self, *, index, batch_size, length, padded_length):
        seed = fold_in(self.config.seed, -length, index)
        return self._draw(seed, batch_size, length, padded_length)

    def inputs(self, batch):
        mask, source = batch["inside"], batch["source"]
        inputs = {"token_ids": source, "target_ids": batch["target"]}
        return {**inputs, "padding_mask": mask, "target_padding_mask": mask}

    def loss(self, outputs, batch):
        losses = cross_entropies(outputs, batch["source"])
        return sum_counted(losses, batch["inside"])

    def sums(self, outputs, batch):
        inside = batch["inside"] & batch["used"][:, None]
        losses = cross_entropies(outputs, batch["source"])
        return ops.stack(sum_counted(losses, inside))


def build_model(config):
    """Builds the model of a configuration."""
    size = config.symbols + 1
    return EncoderDecoder(vocabulary_size=size, **model_arguments(config))


EXPERIMENT = Experiment(
    "copy", CopyConfig, {"small": {}}, build_model, CopyProblem
)
