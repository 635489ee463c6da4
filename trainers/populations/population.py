"""Many small models that one program of JAX trains together.

The models of a population differ in seed and learning rate. Weights and the
states of optimizers have one more axis, over the members, and `jax.vmap` turns
the training step of one model into that of all. Batches are drawn by the
program itself.

The length of a step depends on the step alone, so that all members have the
same padded length. Everything else that is drawn for a member follows from its
seed and the step: a population of one member trains it in the same way.

A member diverges in the first step whose loss, gradients or new state are not
finite. It keeps the state before that step, and the others train on. The
optimizer of each member counts its steps, so that its state tells when it
diverged.
"""

import dataclasses
import functools

import jax
import numpy as np
from jax import numpy as jnp

from trainers.engine.evaluation_sizes import PAIRS, split_examples
from trainers.engine.jax_draws import draw_states, fold_in
from trainers.engine.losses import sum_answer_losses, sum_answer_metrics
from trainers.engine.optimizer import clip_gradients
from trainers.errors import TrainingError

DATA, LENGTHS = 1, 2
"""What keys are for; 0 is what the layers of a model draw."""


class Stacked:
    """The values of a variable, one for each member.

    Args:
        variable: Keras variable.
        values: Array `(members, ...)`.
    """

    def __init__(self, variable, values):
        self.path = variable.path
        self.assign(values)

    @property
    def shape(self):
        """Tuple of int, with the number of members before the rest."""
        return self.value.shape

    def assign(self, values):
        """Replaces the values."""
        self.value = jnp.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.value, dtype)


@dataclasses.dataclass(frozen=True)
class StackedVariables:
    """Variables of all members, with the attributes that name them in files.

    Attributes:
        variables: List of `Stacked`.
    """

    variables: list

    @property
    def weights(self):
        """The variables, as of a model."""
        return self.variables

    @property
    def trainable_variables(self):
        """The variables, as of a model that is trained as a whole."""
        return self.variables


class Population:
    """Trains and measures the members of a population.

    It takes the place of a `TrainingStep` in `trainers.engine.loop.train`.

    Args:
        build_model: Function of a seed; returns a built Keras model whose
            initial weights follow from it.
        make_optimizer: Function of a model; returns its built optimizer.
        task: `JaxTask` or `TaskForJax` that draws the batches.
        members: Tuple of `Member`.
        lengths: Tuple of int, the trained lengths.
        buckets: Tuple of int, the padded lengths of training, increasing.
        evaluation_buckets: The same, of evaluation.
        batch_size: int. Number of examples in the batch of a member.
        clip_norm: float. Largest global norm of a member's gradients.
        steps_per_loop: int. Largest number of steps of a call of `run`.
        at_once: int, at least 1. Number of members that are computed at once;
            others are computed after them, to save memory.

    Attributes:
        model: The Keras model that the program is made of.
        weights: `StackedVariables`, the weights of all members.
        slots: `StackedVariables`, the states of their optimizers.
        losses: NumPy array `(members,)`, the mean losses of the last call of
            `run`; NaN for members that have diverged.
    """

    def __init__(
        self,
        *,
        build_model,
        make_optimizer,
        task,
        members,
        lengths,
        buckets,
        evaluation_buckets,
        batch_size,
        clip_norm,
        steps_per_loop,
        at_once,
    ):
        self.members = members
        self.task = task
        self.lengths = tuple(lengths)
        self.buckets = tuple(buckets)
        self.evaluation_buckets = tuple(evaluation_buckets)
        self.batch_size = batch_size
        self.clip_norm = clip_norm
        self.steps_per_loop = steps_per_loop
        self.at_once = min(at_once, len(members))
        self.seeds = jnp.asarray([member.seed for member in members])
        self.losses = np.full(len(members), np.nan)
        initial = {}
        for seed in {member.seed: None for member in members}:
            self.model = build_model(seed)
            initial[seed] = list(map(np.array, self.model.trainable_variables))
        begun = [initial[member.seed] for member in members]
        self.weights = StackedVariables(
            [
                Stacked(variable, np.stack(values))
                for variable, values in zip(
                    self.model.trainable_variables,
                    zip(*begun, strict=True),
                    strict=True,
                )
            ]
        )
        self.optimizer = make_optimizer(self.model)
        self.slots = StackedVariables(
            [
                Stacked(variable, self._begin_slot(variable))
                for variable in self.optimizer.variables
            ]
        )
        (self._count,) = (
            index
            for index, variable in enumerate(self.optimizer.variables)
            if variable is self.optimizer.iterations
        )
        self._train = jax.jit(self._compute_steps, donate_argnums=0)
        self._measure = jax.jit(self._compute_sums, static_argnums=(3, 4, 5))

    def iterate(self, first_step, last_step):
        """Returns `None`: the program draws the batches of its steps."""

    def run(self, iterator, first_step, steps):
        """Computes steps of all members.

        Args:
            iterator: `None`.
            first_step: int. Number of the first step.
            steps: int. Number of steps.

        Returns:
            NumPy array `(steps,)`, the mean loss of all members that had not
            diverged.

        Raises:
            TrainingError: If all members have diverged.
        """
        parts = self.weights.variables, self.slots.variables
        # The program takes the arrays over.
        state = tuple([variable.value for variable in part] for part in parts)
        state, losses = self._train(state, first_step, steps)
        for part, values in zip(parts, state, strict=True):
            for variable, value in zip(part, values, strict=True):
                variable.assign(value)
        losses = np.asarray(losses)[:steps]
        self._check_any_left(first_step + steps)
        self.losses = losses.mean(axis=0)
        return np.nanmean(losses, axis=1)

    def find_diverged(self, step):
        """Returns which members have diverged in the first steps.

        Args:
            step: int. Number of steps that the population was trained for.

        Returns:
            Dict from the numbers of members to the step, from 1, in which each
            diverged.
        """
        counts = np.asarray(self.slots.variables[self._count])
        return {
            number: int(count) + 1
            for number, count in enumerate(counts)
            if count < step
        }

    def evaluate(self, length, examples):
        """Measures all members at a length.

        Args:
            length: int. The length.
            examples: int. Number of examples of each member.

        Returns:
            NumPy array `(members, 6)`, the sums of `sum_answer_metrics`.
        """
        tokens = self.task.total_length(length)
        padded_length = min(n for n in self.evaluation_buckets if n >= tokens)
        batches, share = split_examples(examples, padded_length, 1)
        fitting = max(1, PAIRS // (share * padded_length**2))
        at_once = min(self.at_once, fitting)
        weights = [variable.value for variable in self.weights.variables]
        sums = 0
        for index in range(batches):
            which = jnp.asarray([length, index, examples])
            found = self._measure(
                weights, self.seeds, which, padded_length, share, at_once
            )
            sums += np.asarray(found, np.float64)
        return sums

    def length_at(self, step):
        """Returns the length of all examples of a step, a scalar array."""
        key = fold_in(LENGTHS, step)
        index = jax.random.randint(key, (), 0, len(self.lengths))
        return jnp.asarray(self.lengths)[index]

    def _begin_slot(self, variable):
        values = np.stack([np.array(variable)] * len(self.members))
        if variable.path.endswith("/learning_rate"):
            rates = [member.learning_rate for member in self.members]
            values = np.asarray(rates, values.dtype)
        return values

    def _check_any_left(self, step):
        diverged = self.find_diverged(step)
        if len(diverged) == len(self.members):
            last = max(diverged, key=diverged.get)
            raise TrainingError(
                "the losses of all members are not finite; the last to "
                f"diverge, in step {diverged[last]}, was {self.members[last]}: "
                "choose other --learning_rates or --seeds."
            )

    def _compute_steps(self, state, first_step, steps):
        def compute(index, carried):
            state, losses = carried
            found, state = self._compute_step(state, first_step + index)
            return state, losses.at[index].set(found)

        losses = jnp.zeros((self.steps_per_loop, len(self.members)))
        return jax.lax.fori_loop(0, steps, compute, (state, losses))

    def _compute_step(self, state, step):
        length = self.length_at(step)
        totals = jnp.asarray([self.task.total_length(n) for n in self.lengths])
        tokens = totals[jnp.searchsorted(jnp.asarray(self.lengths), length)]
        programs = [
            functools.partial(self._update_all, padded_length=padded)
            for padded in self.buckets
        ]
        index = jnp.searchsorted(jnp.asarray(self.buckets), tokens)
        return jax.lax.switch(index, programs, state, step, length)

    def _update_all(self, state, step, length, padded_length):
        def update(member):
            return self._update(*member, step, length, padded_length)

        return map_members(update, (state, self.seeds), self.at_once)

    def _update(self, state, seed, step, length, padded_length):
        weights, slots = state
        batch = self.task.draw_batch(
            fold_in(DATA, seed, step), self.batch_size, length, padded_length
        )
        fixed = draw_states(self.model, seed, step)

        def mean_loss(weights):
            outputs, _ = self.model.stateless_call(
                weights, fixed, read_inputs(batch), training=True
            )
            loss, count = sum_answer_losses(outputs, batch)
            return loss / count

        loss, gradients = jax.value_and_grad(mean_loss)(weights)
        gradients = clip_gradients(gradients, self.clip_norm)
        new_state = self.optimizer.stateless_apply(slots, gradients, weights)
        new_state = tuple(map(list, new_state))
        is_finite = jnp.isfinite(loss)
        for values in jax.tree.leaves(new_state):
            is_finite &= jnp.isfinite(values).all()
        trains = is_finite & (slots[self._count] == step)
        state = jax.tree.map(
            functools.partial(jnp.where, trains), new_state, state
        )
        return jnp.where(trains, loss, jnp.nan), state

    def _compute_sums(self, weights, seeds, which, padded_length, share, most):
        length, index, examples = which
        used = index * share + jnp.arange(share) < examples

        def measure(member):
            weights, seed = member
            # Negative numbers, which no training step has.
            numbers = seed, -length, index
            batch = self.task.draw_batch(
                fold_in(DATA, *numbers), share, length, padded_length
            )
            fixed = draw_states(self.model, *numbers)
            outputs, _ = self.model.stateless_call(
                weights, fixed, read_inputs(batch), training=False
            )
            return sum_answer_metrics(outputs, {**batch, "used": used})

        return map_members(measure, (weights, seeds), most)


def map_members(function, members, at_once):
    """Applies a function to all members, `at_once` of them at a time.

    Args:
        function: Function of the arrays of one member.
        members: Structure of arrays `(members, ...)`.
        at_once: int, at least 1.
    """
    number = len(jax.tree.leaves(members)[0])
    if at_once >= number > 1:
        return jax.vmap(function)(members)
    batch_size = at_once if at_once > 1 else None
    return jax.lax.map(function, members, batch_size=batch_size)


def read_inputs(batch):
    """Returns what a model reads of a batch."""
    return {name: batch[name] for name in ("token_ids", "lengths")}
