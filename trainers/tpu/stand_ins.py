"""Experiments with published models that have no trainer, for compiling."""

import functools

import tensorflow as tf
from keras import ops

from datasets.indexed import indexed_dataset
from datasets.seeds import fold_in
from keras_lengen.models import (
    EncoderDecoder,
    TransformerDecoder,
    TransformerEncoder,
    presets,
)
from trainers.engine.losses import cross_entropies, sum_counted
from trainers.engine.problem import Metric, Problem
from trainers.experiment import Experiment
from trainers.options.fields import LengthsConfig
from trainers.options.layers import merge_arguments


class RandomTokens(Problem):
    """A problem with random tokens and targets.

    Args:
        config: Configuration of the run.
        vocabulary_size: int. Number of token ids.
        output_size: int. Number of classes of an output.
        targets: int. Number of target tokens of an encoder-decoder, which are
            the last tokens of each sequence; 0 for any other model.
    """

    title = "random tokens"
    metrics = (
        Metric("accuracy"),
        Metric("loss", "nats", higher_is_better=False),
    )

    def __init__(self, config, *, vocabulary_size, output_size, targets=0):
        super().__init__(config)
        self.vocabulary_size = vocabulary_size
        self.output_size = output_size
        self.targets = targets

    def training_batches(self, *, padded_length, **steps):
        def draw(step, number, size):
            seed = fold_in(self.config.seed, step, number)
            return self._draw(seed, size, padded_length)

        size = self.config.batch_size
        return indexed_dataset(draw, batch_size=size, **steps)

    def tokens_at(self, step):
        return tf.constant(self.tokens(self.longest_trained))

    def evaluation_batch(self, *, index, batch_size, length, padded_length):
        seed = fold_in(self.config.seed, -length, index)
        return self._draw(seed, batch_size, padded_length)

    def inputs(self, batch):
        if not self.targets:
            return super().inputs(batch)
        token_ids = batch["token_ids"]
        return {
            "token_ids": token_ids[:, : -self.targets],
            "lengths": batch["lengths"] - self.targets,
            "target_ids": token_ids[:, -self.targets :],
        }

    def loss(self, outputs, batch):
        targets = batch["targets"]
        losses = cross_entropies(outputs, targets)
        return sum_counted(losses, ops.ones_like(targets, dtype="bool"))

    def sums(self, outputs, batch):
        targets = batch["targets"]
        used = ops.ones_like(targets, dtype="bool") & batch["used"][:, None]
        hits = ops.argmax(outputs, axis=-1) == targets
        losses = cross_entropies(outputs, targets)
        return ops.stack([*sum_counted(hits, used), *sum_counted(losses, used)])

    def _draw(self, seed, size, tokens):
        def random(number, length, classes):
            return tf.random.stateless_uniform(
                (size, length),
                fold_in(0, number, seed[0]),
                maxval=classes,
                dtype=tf.int32,
            )

        return {
            "token_ids": random(0, tokens, self.vocabulary_size),
            "lengths": tf.constant(tokens),
            "targets": random(1, self.targets or tokens, self.output_size),
        }


def make_stand_in(name, model, arguments, targets=0, **fields):
    """Makes an experiment that trains a model on random tokens.

    Args:
        name: str. Name of the experiment.
        model: Class of the model.
        arguments: Dict of the model's arguments, as in `presets`.
        targets: int. Number of target tokens, as for `RandomTokens`.
        **fields: Values of the configuration.

    Returns:
        `Experiment`.
    """
    shared = ("num_layers", "num_heads", "model_dim", "dropout")
    fields = {
        **{name: arguments[name] for name in shared},
        "max_position": 2048,
        "evaluation_examples": 500,
        **fields,
    }
    vocabulary_size = arguments["vocabulary_size"]
    return Experiment(
        name,
        LengthsConfig,
        {"small": fields, "paper": fields},
        functools.partial(_build, model, arguments),
        functools.partial(
            RandomTokens,
            vocabulary_size=vocabulary_size,
            output_size=arguments.get("output_size") or vocabulary_size,
            targets=targets,
        ),
    )


def _build(model, arguments, config):
    return model(**merge_arguments(arguments, config))


_SMALL = {
    **presets["ruoss"],
    "num_layers": 1,
    "vocabulary_size": 16,
    "output_size": 16,
}
_SMALL_FIELDS = {"train_length": "64", "test_lengths": "64"}

STAND_INS = {
    experiment.name: experiment
    for experiment in (
        # Models with published shapes that have no trainer yet.
        make_stand_in(
            "t5_decoder",
            TransformerDecoder,
            {**presets["t5_decoder"], "vocabulary_size": 32128},
            batch_size=64,
            train_length="128",
            test_lengths="128",
        ),
        make_stand_in(
            "gpt2",
            TransformerDecoder,
            presets["gpt2"],
            batch_size=64,
            train_length="512",
            test_lengths="512",
        ),
        # Models with one block, to compile with every encoding and sampler.
        make_stand_in("encoder", TransformerEncoder, _SMALL, **_SMALL_FIELDS),
        make_stand_in("decoder", TransformerDecoder, _SMALL, **_SMALL_FIELDS),
        make_stand_in(
            "encoder_decoder",
            EncoderDecoder,
            _SMALL,
            targets=64,
            train_length="128",
            test_lengths="128",
        ),
    )
}
