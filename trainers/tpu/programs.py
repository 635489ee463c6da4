"""The programs that a run needs on a TPU, as StableHLO.

Each is the very step of the trainer, as one of several replicas runs it: its
share of the global batch, and sums over all replicas where the step makes
them.
"""

import math

import keras
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.eager.polymorphic_function.compiler_ir import (
    from_concrete_function,
)

from trainers import experiment as experiments
from trainers.cluster.tensorflow_strategy import TensorFlowStrategy
from trainers.cluster.workers import check_share
from trainers.engine.draws import set_seeds
from trainers.engine.evaluation import LengthEvaluation, split
from trainers.engine.tensorflow_step import (
    TensorFlowEvaluationStep,
    TensorFlowTrainingStep,
)
from trainers.tpu.stand_ins import STAND_INS

MODES = ("train", "evaluate")


def trainers():
    """Returns what can be compiled, `Experiment`s by name."""
    return {**experiments.registered(), **STAND_INS}


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


def lower(experiment, config, mode, tokens, replicas):
    """Returns the text of one replica's program, and two facts on it.

    Arguments, the other two results and errors are those of `trace`.
    """
    function, examples, trained = trace(
        experiment, config, mode, tokens, replicas
    )
    # TensorFlow's ordinary package has no kernels for TPUs, and needs none:
    # what it writes for CPUs is as good for the TPU's compiler.
    text = from_concrete_function(function)(
        stage="stablehlo", platform_name="CPU"
    )
    return text, examples, trained


def trace(experiment, config, mode, tokens, replicas):
    """Returns one replica's program, a concrete function of step and batch.

    Args:
        experiment: The `Experiment`.
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
    check_share(replicas, config)
    strategy = TensorFlowStrategy(tf.distribute.get_strategy())
    parts = experiment.make_parts(config, strategy)
    make = {"train": _training, "evaluate": _evaluation}[mode]
    examples, batch, step = make(*parts, strategy, config, tokens, replicas)

    def run(number, *values):
        with Replica(replicas):
            return step(number, dict(zip(batch, values, strict=True)))

    function = tf.function(run, jit_compile=True).get_concrete_function(
        tf.TensorSpec((), tf.int64), *batch.values()
    )
    model = parts[0]
    trained = sum(
        math.prod(variable.shape) for variable in model.trainable_variables
    )
    return function, examples, trained


def _training(model, optimizer, problem, strategy, config, tokens, replicas):
    """Examples and batch of a replica, and what it does in a step."""
    step = TensorFlowTrainingStep(
        model=model,
        optimizer=optimizer,
        problem=problem,
        strategy=strategy,
        buckets=(tokens,),
        seed=config.seed,
        clip_norm=config.clip_norm,
        compiled=False,
        gradient_accumulation_steps=config.gradient_accumulation_steps,
    )
    # A process for every replica.
    context = tf.distribute.InputContext(replicas, 0, replicas)
    batch = step.make_batches(0, 1, context).element_spec
    examples = config.batch_size // replicas
    return examples, batch, lambda number, batch: step.update(batch, number)


def _evaluation(model, optimizer, problem, strategy, config, tokens, replicas):
    """Examples and batch of a replica, and what it does with a batch."""
    step = TensorFlowEvaluationStep(
        model=model,
        problem=problem,
        strategy=strategy,
        seed=config.seed,
        compiled=False,
    )
    evaluation = LengthEvaluation(step, buckets=(tokens,))
    length = problem.lengths[-1]
    number = problem.evaluation_examples(length)
    _, examples = split(number, tokens, replicas)
    drawn = evaluation.draw.get_concrete_function(
        tf.constant(length), tf.constant(0), tokens, examples, number
    )
    batch = {
        name: tf.TensorSpec(values.shape, values.dtype)
        for name, values in drawn.structured_outputs.items()
    }

    def measure(number, batch):
        set_seeds(model, config.seed, -tokens, number)
        return step.measure(batch)

    return examples, batch, measure
