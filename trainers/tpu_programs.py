"""The programs that a trainer's run needs on a TPU, as StableHLO.

Each is the very step of the trainer, as one of several replicas runs it: its
share of the global batch, and sums over all replicas where the step makes
them.
"""

import dataclasses
import math
import types
from collections.abc import Callable

import keras
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.eager.polymorphic_function.compiler_ir import (
    from_concrete_function,
)

from datasets.pipeline import length_buckets
from keras_lengen.layers import ATTENTIONS
from keras_lengen.models import (
    EncoderDecoder,
    TransformerDecoder,
    TransformerEncoder,
    presets,
)
from trainers import algorithmic
from trainers.config import (
    ConfigError,
    TrainerConfig,
    build_encoding,
    check_positions,
)
from trainers.length_evaluation import PROGRAMS, LengthEvaluation, answer_loss
from trainers.loop import Problem, TrainingStep, set_seeds
from trainers.optimizer import make_optimizer

MODES = ("train", "evaluate")


@dataclasses.dataclass(frozen=True)
class Trainer:
    """What is known of a trainer before it runs.

    Attributes:
        config: Its class of configurations.
        presets: Its presets.
        complete: Called with a configuration; returns the one of its run.
        build: Called with that; returns model and optimizer.
        outputs: Of how many of the tokens there are outputs, 0 for all.
    """

    config: type
    presets: dict
    complete: Callable
    build: Callable
    outputs: int = 0


class Replica(tf.distribute.ReplicaContext):
    """One of several replicas that run the same program."""

    def __init__(self, replicas):
        super().__init__(tf.distribute.get_strategy(), 0)
        self._replicas = replicas

    @property
    def num_replicas_in_sync(self):
        """Number of replicas."""
        return self._replicas

    @property
    def replica_id_in_sync_group(self):
        """Which of them this is, known when the program runs."""
        return gen_xla_ops.xla_replica_id()

    def all_reduce(self, reduce_op, value, options=None):
        """Sums over the replicas, as a part of the program."""
        if reduce_op != tf.distribute.ReduceOp.SUM:
            raise ValueError(f"replicas add up only; got {reduce_op}.")
        everyone = [list(range(self._replicas))]
        return tf.nest.map_structure(
            lambda part: gen_xla_ops.xla_all_reduce(
                part, everyone, reduce_op="Add", mode="CrossReplica"
            ),
            value,
        )


def padded_lengths(config, mode):
    """The padded lengths of a run, increasing, each a program."""
    lengths, count = {
        "train": (config.trained_lengths, config.buckets),
        "evaluate": (config.evaluated_lengths, PROGRAMS),
    }[mode]
    return length_buckets([config.total_length(n) for n in lengths], count)


def lower(trainer, config, mode, tokens, replicas):
    """The text of one replica's program, and two facts on it.

    Arguments, the other two results and errors are those of `trace`.
    """
    function, examples, trained = trace(trainer, config, mode, tokens, replicas)
    # TensorFlow's ordinary package has no kernels for TPUs, and needs none:
    # what it writes for CPUs is as good for the TPU's compiler.
    text = from_concrete_function(function)(
        stage="stablehlo", platform_name="CPU"
    )
    return text, examples, trained


def trace(trainer, config, mode, tokens, replicas):
    """One replica's program, as a concrete function of a step and a batch.

    Args:
        trainer: The `Trainer`.
        config: Its configuration.
        mode: `"train"` or `"evaluate"`.
        tokens: Padded length of the sequences.
        replicas: Number of replicas.

    Returns:
        The function, the number of examples of a replica, and the number of
        trained parameters.

    Raises:
        ConfigError: If there is no such model, or no such share of a batch.
    """
    keras.backend.clear_session()
    try:
        model, optimizer = trainer.build(config)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    make = {"train": _training, "evaluate": _evaluation}[mode]
    examples, step = make(model, optimizer, config, tokens, replicas)
    batch = _batch(examples, tokens, trainer.outputs or tokens)

    def run(number, *values):
        with Replica(replicas):
            return step(number, dict(zip(batch, values, strict=True)))

    function = tf.function(run, jit_compile=True).get_concrete_function(
        tf.TensorSpec((), tf.int64), *batch.values()
    )
    trained = sum(
        math.prod(variable.shape) for variable in model.trainable_variables
    )
    return function, examples, trained


def _training(model, optimizer, config, tokens, replicas):
    """Examples of a replica, and what it does in a step."""
    share = replicas * config.gradient_accumulation_steps
    if config.batch_size % share:
        raise ConfigError(
            f"{replicas} chips with {config.gradient_accumulation_steps} "
            f"part(s) each cannot share {config.batch_size} examples equally: "
            f"choose a multiple of {share}."
        )
    step = TrainingStep(
        model,
        optimizer,
        Problem(None, (tokens,), None, answer_loss),
        tf.distribute.get_strategy(),
        seed=config.seed,
        clip_norm=config.clip_norm,
        compiled=False,
        gradient_accumulation_steps=config.gradient_accumulation_steps,
    )
    examples = config.batch_size // replicas
    return examples, lambda number, batch: step.update(batch, number)


def _evaluation(model, optimizer, config, tokens, replicas):
    """Examples of a replica, and what it does with a batch."""
    evaluation = LengthEvaluation(
        model,
        # Of a task and a strategy, these are all it asks for by now.
        types.SimpleNamespace(total_length=config.total_length),
        config.evaluated_lengths,
        types.SimpleNamespace(num_replicas_in_sync=replicas),
        examples=config.evaluation_examples,
        seed=config.seed,
        compiled=False,
    )

    def step(number, batch):
        set_seeds(model, config.seed, -tokens, number)
        return evaluation.measure_batch(batch)

    _, examples = evaluation.split(tokens)
    return examples, step


def _batch(examples, tokens, outputs):
    """What `datasets.pipeline` makes of a replica's share."""

    def of(tokens, dtype):
        return tf.TensorSpec((examples, tokens), dtype)

    return {
        "token_ids": of(tokens, tf.int32),
        "lengths": tf.TensorSpec((), tf.int32),
        "targets": of(outputs, tf.int32),
        "answer": of(outputs, tf.bool),
        "scored": of(outputs, tf.bool),
        "used": tf.TensorSpec((examples,), tf.bool),
    }


def _build_algorithmic(config):
    return algorithmic.build_model(config, tf.distribute.get_strategy())


class SourceAndTarget(EncoderDecoder):
    """An encoder-decoder that reads both sequences as one, source first."""

    targets = 1
    """Number of tokens of the target."""

    def call(self, inputs, training=None):
        token_ids = inputs["token_ids"]
        parted = {
            "token_ids": token_ids[:, : -self.targets],
            "lengths": inputs["lengths"] - self.targets,
            "target_ids": token_ids[:, -self.targets :],
        }
        return super().call(parted, training=training)


class HalfAndHalf(SourceAndTarget):
    """Its source and its target are equally long."""

    targets = 64


def stand_in(model, arguments, outputs=0, **fields):
    """A `Trainer` for a model whose own is yet to come.

    Args:
        model: Class of the model.
        arguments: Its arguments, as `presets` has them.
        outputs: Of how many of the tokens there are outputs, 0 for all.
        **fields: Of the configuration.
    """
    told = ("num_layers", "num_heads", "model_dim", "dropout")
    fields = {
        **{name: arguments[name] for name in told},
        "max_position": 2048,
        "evaluation_examples": 500,
        **fields,
    }

    def complete(config):
        tokens = max(config.evaluated_lengths)
        check_positions(build_encoding(config), tokens)
        return config

    def build(config):
        made = model(
            **arguments,
            encoding=build_encoding(config),
            attention=ATTENTIONS[config.attention],
            draw=config.draw,
            dtype=config.precision,
        )
        return made, make_optimizer(config, made)

    return Trainer(
        TrainerConfig,
        {"small": fields, "paper": fields},
        complete,
        build,
        outputs,
    )


_SMALL = {
    **presets["ruoss"],
    "num_layers": 1,
    "vocabulary_size": 16,
    "output_size": 16,
}
_SMALL_FIELDS = {"train_length": "64", "test_lengths": "64"}

TRAINERS = {
    "algorithmic": Trainer(
        algorithmic.AlgorithmicConfig,
        algorithmic.PRESETS,
        algorithmic.with_max_position,
        _build_algorithmic,
    ),
    # The published shapes of models whose trainers are yet to come.
    "enwik8": stand_in(
        TransformerDecoder,
        presets["enwik8"],
        batch_size=64,
        train_length="256",
        test_lengths="256,1024",
    ),
    "imagenet": stand_in(
        SourceAndTarget,
        presets["imagenet"],
        outputs=1,
        batch_size=32,
        max_position=4096,
        # Pixels, a delimiter after each row, and the token to start from.
        train_length="507",
        test_lengths="507,2026",
    ),
    "t5_decoder": stand_in(
        TransformerDecoder,
        {**presets["t5_decoder"], "vocabulary_size": 32128},
        batch_size=64,
        train_length="128",
        test_lengths="128",
    ),
    "gpt2": stand_in(
        TransformerDecoder,
        presets["gpt2"],
        batch_size=64,
        train_length="512",
        test_lengths="512",
    ),
    # One block each, to compile with every encoding and sampler.
    "encoder": stand_in(TransformerEncoder, _SMALL, **_SMALL_FIELDS),
    "decoder": stand_in(TransformerDecoder, _SMALL, **_SMALL_FIELDS),
    "encoder_decoder": stand_in(
        HalfAndHalf,
        _SMALL,
        outputs=64,
        train_length="128",
        test_lengths="128",
    ),
}
