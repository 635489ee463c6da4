"""Adam with weight decay, and schedules of its learning rate.

A schedule says by `depends_on_steps` whether the learning rate of a step
depends on the number of all steps.
"""

import dataclasses
from typing import ClassVar

import keras
from keras import ops

from keras_lengen.checks.arguments import Number


def declared(default, argument):
    """Returns a field of a schedule, which an `Argument` declares."""
    return dataclasses.field(default=default, metadata={"argument": argument})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schedule:
    """Base class of schedules; `declared` makes its fields."""

    depends_on_steps: ClassVar[bool] = False

    def __post_init__(self):
        """Raises `ValueError` if a number is out of range."""
        for field in dataclasses.fields(self):
            field.metadata["argument"].check(
                field.name, getattr(self, field.name)
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Constant(Schedule):
    """Keeps the learning rate constant."""

    def __call__(self, learning_rate, steps):
        """Returns the learning rate, a float or a Keras schedule."""
        return learning_rate


@dataclasses.dataclass(frozen=True, kw_only=True)
class FallingSchedule(Schedule):
    """Base class of schedules that fall until the last step.

    Args:
        end: float, at least 0 and at most the peak learning rate. Learning
            rate in the last step.
    """

    depends_on_steps: ClassVar[bool] = True

    end: float = declared(0.0, Number(0, what="a learning rate"))

    def check_peak(self, learning_rate):
        """Raises `ValueError` if the schedule would rise."""
        if self.end > learning_rate:
            raise ValueError(
                f"{type(self).__name__} falls from the learning rate "
                f"{learning_rate} to end={self.end}: choose a lower end."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Polynomial(FallingSchedule):
    """Falls to `end` in the last step, linearly where `power` is 1.

    Args:
        power: float above 0, at most 100. Exponent of the fraction of steps
            that are left.
        end: float, at least 0 and at most the peak learning rate. Learning
            rate in the last step.
    """

    power: float = declared(1.0, Number(most=100, above=0))

    def __call__(self, learning_rate, steps):
        """Returns the learning rate, a float or a Keras schedule."""
        self.check_peak(learning_rate)
        return keras.optimizers.schedules.PolynomialDecay(
            learning_rate, steps, end_learning_rate=self.end, power=self.power
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cosine(FallingSchedule):
    """Falls to `end` in the last step, along half a period of a cosine.

    Args:
        end: float, at least 0 and at most the peak learning rate. Learning
            rate in the last step.
    """

    def __call__(self, learning_rate, steps):
        """Returns the learning rate, a float or a Keras schedule."""
        self.check_peak(learning_rate)
        return keras.optimizers.schedules.CosineDecay(
            learning_rate, steps, alpha=self.end / learning_rate
        )


SCHEDULES = {
    "Constant": Constant,
    "Polynomial": Polynomial,
    "Cosine": Cosine,
}


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly from 0, then follows another schedule.

    Args:
        learning_rate: float. Learning rate after the last warm-up step.
        warmup_steps: int. Number of warm-up steps.
        after: float or Keras schedule. Learning rate after the warm-up; steps
            of a schedule count from its end.
    """

    def __init__(self, learning_rate, warmup_steps, after):
        super().__init__()
        self.learning_rate = learning_rate
        self.warmup_steps = warmup_steps
        self.after = after

    def __call__(self, step):
        step = ops.cast(step, "float32")
        rising = self.learning_rate * (step + 1.0) / self.warmup_steps
        later = self.after
        if callable(later):
            later = later(ops.maximum(step - self.warmup_steps, 0.0))
        return ops.where(step < self.warmup_steps, rising, later)

    def get_config(self):
        return {
            "learning_rate": self.learning_rate,
            "warmup_steps": self.warmup_steps,
            "after": self.after,
        }


class Adam(keras.optimizers.Adam):
    """Adam for gradients that are already summed over the replicas.

    Keras would sum them again: they would be too large, which Adam hides
    almost entirely, and would cross the network twice.
    """

    def _all_reduce_sum_gradients(self, grads_and_vars):
        return list(grads_and_vars)


def make_optimizer(
    model,
    *,
    learning_rate,
    schedule,
    steps,
    warmup_steps=0,
    weight_decay=0.0,
    scales_loss=False,
):
    """Makes the optimizer of a run, built for a model.

    Args:
        model: Built Keras model.
        learning_rate: float, above 0. Peak learning rate.
        schedule: Instance of one of `SCHEDULES`.
        steps: int. Number of the last step.
        warmup_steps: int, at least 0. Steps in which the learning rate rises
            linearly from 0.
        weight_decay: float, at least 0. Decoupled decay of weight matrices.
        scales_loss: bool. Whether to scale the loss, which float16 needs.

    Returns:
        A built Keras optimizer that takes gradients summed over the replicas.
    """
    weights = model.trainable_variables
    rate = schedule(learning_rate, steps - warmup_steps)
    if warmup_steps:
        rate = WarmUp(learning_rate, warmup_steps, rate)
    optimizer = Adam(rate, weight_decay=weight_decay or None, epsilon=1e-8)
    # As is usual, biases and the scales of norms do not decay.
    optimizer.exclude_from_weight_decay(
        var_list=[weight for weight in weights if len(weight.shape) < 2]
    )
    if scales_loss:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    optimizer.build(weights)
    return optimizer


def clip_gradients(gradients, clip_norm):
    """Returns gradients whose global norm is at most `clip_norm`.

    Args:
        gradients: List of tensors.
        clip_norm: float or scalar tensor, above 0.
    """
    norm = ops.sqrt(sum(ops.sum(ops.square(g)) for g in gradients))
    ratio = clip_norm / ops.maximum(norm, clip_norm)
    return [gradient * ratio for gradient in gradients]
