"""The programs of a run on a TPU with TensorFlow, as StableHLO.

Each program is the training step of a trainer, or the evaluation of a batch,
as one of several replicas runs it: with the replica's share of the global
batch, and with sums over all replicas.
"""

import keras
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.eager.polymorphic_function.compiler_ir import (
    from_concrete_function,
)

from keras_lengen.layers.encodings.gathers import described_tpu
from trainers.devices.tensorflow_strategy import TensorFlowStrategy
from trainers.devices.workers import check_share
from trainers.engine.draws import set_seeds
from trainers.engine.tensorflow_step import (
    TensorFlowEvaluationStep,
    TensorFlowTrainingStep,
)
from trainers.tpu.programs import (
    count_trained,
    describe_evaluation_batch,
    find_share,
)


class Replica(tf.distribute.ReplicaContext):
    """Context of one of several replicas that run the same program.

    Args:
        replicas: int. Number of replicas.
    """

    def __init__(self, replicas):
        super().__init__(tf.distribute.get_strategy(), 0)
        self._replicas = replicas

    @property
    def num_replicas_in_sync(self):
        """Number of replicas."""
        return self._replicas

    @property
    def replica_id_in_sync_group(self):
        """Index of this replica, a tensor known when the program runs."""
        return gen_xla_ops.xla_replica_id()

    def all_reduce(self, reduce_op, value, options=None):
        """Sums over the replicas by an operation of the program."""
        if reduce_op != tf.distribute.ReduceOp.SUM:
            raise ValueError(f"reduce_op must be SUM; got {reduce_op}.")
        everyone = [list(range(self._replicas))]
        return tf.nest.map_structure(
            lambda part: gen_xla_ops.xla_all_reduce(
                part, everyone, reduce_op="Add", mode="CrossReplica"
            ),
            value,
        )


def lower(experiment, config, mode, tokens, topology):
    """Returns the StableHLO text of one replica's program.

    Arguments and errors are those of `trace`.

    Returns:
        Tuple of the text, the number of examples of a replica, and the number
        of trained parameters.
    """
    function, examples, trained = trace(
        experiment, config, mode, tokens, topology
    )
    # TensorFlow's ordinary package has no kernels for TPUs. The StableHLO that
    # it writes for CPUs can be compiled for TPUs.
    text = from_concrete_function(function)(
        stage="stablehlo", platform_name="CPU"
    )
    return text, examples, trained


def trace(experiment, config, mode, tokens, topology):
    """Traces one replica's program.

    Args:
        experiment: `Experiment`.
        config: Configuration of the experiment.
        mode: `"train"` or `"evaluate"`.
        tokens: int. Padded length of the sequences.
        topology: `Topology` with one replica on each chip.

    Returns:
        Tuple of the program, a concrete function of the step and the batch;
        the number of examples of a replica; and the number of trained
        parameters.

    Raises:
        ConfigError: If the configuration of the model is invalid, or the
            replicas cannot share a batch equally.
    """
    keras.backend.clear_session()
    replicas = topology.chips
    check_share(replicas, config)
    strategy = TensorFlowStrategy(tf.distribute.get_strategy())
    parts = experiment.make_parts(config, strategy)
    make = {"train": _prepare_training, "evaluate": _prepare_evaluation}[mode]
    examples, batch, step = make(*parts, strategy, config, tokens, replicas)

    def run(number, *values):
        with Replica(replicas), described_tpu():
            return step(number, dict(zip(batch, values, strict=True)))

    function = tf.function(run, jit_compile=True).get_concrete_function(
        tf.TensorSpec((), tf.int64), *batch.values()
    )
    return function, examples, count_trained(parts[0])


def _prepare_training(
    model, optimizer, problem, strategy, config, tokens, replicas
):
    """Prepares the training step of a replica.

    Returns:
        Tuple of the number of examples of a replica, the specification of its
        batch, and a function of the step and the batch.
    """
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
    # One process for each replica.
    context = tf.distribute.InputContext(replicas, 0, replicas)
    batch = step.make_batches(0, 1, context).element_spec
    examples = config.batch_size // replicas
    return examples, batch, lambda number, batch: step.update(batch, number)


def _prepare_evaluation(
    model, optimizer, problem, strategy, config, tokens, replicas
):
    """Prepares the evaluation of a replica.

    Returns:
        Tuple of the number of examples of a replica, the specification of its
        batch, and a function of the number of the batch and the batch.
    """
    step = TensorFlowEvaluationStep(
        model=model,
        problem=problem,
        strategy=strategy,
        seed=config.seed,
        compiled=False,
    )
    examples = find_share(problem, tokens, replicas)
    batch = describe_evaluation_batch(step, tokens, examples)

    def measure(number, batch):
        set_seeds(model, config.seed, -tokens, number)
        return step.measure(batch)

    return examples, batch, measure
