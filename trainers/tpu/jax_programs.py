"""The programs of a run on a TPU with JAX.

Each program is the training step of a trainer, or the evaluation of a batch,
on all chips of a slice. The batch is split over the chips, and each chip has
all variables, as in a run; XLA adds the sums over the chips.
"""

import contextlib

import jax
import keras

from trainers.devices.jax_strategy import JaxStrategy
from trainers.devices.workers import check_share
from trainers.engine.jax_step import JaxEvaluationStep, JaxTrainingStep
from trainers.tpu.programs import (
    count_trained,
    describe_evaluation_batch,
    find_share,
)


class DescribedChips(JaxStrategy):
    """Chips of which there is only a description, so that they hold no data."""

    @contextlib.contextmanager
    def scope(self):
        """Leaves new variables on this machine."""
        yield

    def describe_variables(self, variables):
        """Describes the values of variables, which every chip has.

        Args:
            variables: List of Keras variables.

        Returns:
            List of `jax.ShapeDtypeStruct`.
        """
        whole = self.find_sharding(0)
        return [
            jax.ShapeDtypeStruct(variable.shape, variable.dtype, sharding=whole)
            for variable in variables
        ]

    def describe_batch(self, specs):
        """Describes a global batch.

        Args:
            specs: Dict of `tf.TensorSpec`, the batch of one chip.

        Returns:
            Dict of `jax.ShapeDtypeStruct`.
        """
        return {
            name: jax.ShapeDtypeStruct(
                (self.num_replicas * spec.shape[0], *spec.shape[1:])
                if spec.shape.rank
                else (),
                # JAX's integers have 32 bits by default.
                jax.dtypes.canonicalize_dtype(spec.dtype.as_numpy_dtype),
                sharding=self.find_sharding(spec.shape.rank),
            )
            for name, spec in specs.items()
        }


def lower(experiment, config, mode, tokens, topology):
    """Lowers the program of all chips.

    Args:
        experiment: `Experiment`.
        config: Configuration of the experiment.
        mode: `"train"` or `"evaluate"`.
        tokens: int. Padded length of the sequences.
        topology: `Topology` whose chips share the batch.

    Returns:
        Tuple of the program, a `jax.stages.Lowered`; the number of examples of
        a chip; and the number of trained parameters.

    Raises:
        ConfigError: If the configuration of the model is invalid, or the
            chips cannot share a batch equally.
    """
    keras.backend.clear_session()
    check_share(topology.chips, config)
    chips = DescribedChips(topology.devices())
    parts = experiment.make_parts(config, chips)
    make = {"train": _lower_training, "evaluate": _lower_evaluation}[mode]
    with chips.computing():
        lowered, examples = make(*parts, chips, config, tokens)
    return lowered, examples, count_trained(parts[0])


def _lower_training(model, optimizer, problem, chips, config, tokens):
    """Lowers the training step.

    Returns:
        Tuple of the program and the number of examples of a chip.
    """
    step = JaxTrainingStep(
        model=model,
        optimizer=optimizer,
        problem=problem,
        strategy=chips,
        buckets=(tokens,),
        seed=config.seed,
        clip_norm=config.clip_norm,
        compiled=True,
        gradient_accumulation_steps=config.gradient_accumulation_steps,
    )
    # One batch for each chip.
    batches = step.make_batches(0, 1, chips.input_context())
    batch = chips.describe_batch(batches.element_spec)
    owners = (model.trainable_variables, optimizer.variables)
    state = tuple(map(chips.describe_variables, owners))
    lowered = step.update.lower(state, batch, 0)
    return lowered, config.batch_size // chips.num_replicas


def _lower_evaluation(model, optimizer, problem, chips, config, tokens):
    """Lowers the evaluation of a batch.

    Returns:
        Tuple of the program and the number of examples of a chip.
    """
    step = JaxEvaluationStep(
        model=model,
        problem=problem,
        strategy=chips,
        seed=config.seed,
        compiled=True,
    )
    examples = find_share(problem, tokens, chips.num_replicas)
    specs = describe_evaluation_batch(step, tokens, examples)
    batch = chips.describe_batch(specs)
    weights = chips.describe_variables(model.trainable_variables)
    lowered = step.measure.lower(weights, problem.lengths[-1], 0, batch)
    return lowered, examples
