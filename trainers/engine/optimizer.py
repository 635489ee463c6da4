"""The optimizer of a run: Adam, its learning rate over time, weight decay."""

import dataclasses

import keras
from keras import ops


@dataclasses.dataclass(frozen=True, kw_only=True)
class Constant:
    """The same learning rate all the time."""

    def __call__(self, learning_rate, steps):
        """The learning rate of a step: a number or a Keras schedule."""
        return learning_rate


@dataclasses.dataclass(frozen=True, kw_only=True)
class Polynomial:
    """Falls to `end` in the last step, in a straight line where `power` is 1.

    Args:
        power: Exponent of the share of the steps that are left.
        end: Learning rate in the last step.
    """

    power: float = 1.0
    end: float = 0.0

    def __call__(self, learning_rate, steps):
        """The learning rate of a step: a number or a Keras schedule."""
        return keras.optimizers.schedules.PolynomialDecay(
            learning_rate, steps, end_learning_rate=self.end, power=self.power
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cosine:
    """Falls along half a cosine.

    Args:
        end: Learning rate in the last step.
    """

    end: float = 0.0

    def __call__(self, learning_rate, steps):
        """The learning rate of a step: a number or a Keras schedule."""
        return keras.optimizers.schedules.CosineDecay(
            learning_rate, steps, alpha=self.end / learning_rate
        )


SCHEDULES = {
    "Constant": Constant,
    "Polynomial": Polynomial,
    "Cosine": Cosine,
}


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    """Rises in a straight line from 0, then follows another schedule.

    Args:
        learning_rate: Learning rate after the last step of the rise.
        warmup_steps: Steps that the rise takes.
        after: Learning rate or schedule from there on, its steps counted from
            the end of the rise.
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
    """Adam for gradients that were summed over the replicas before.

    Keras would sum them once more: they would come out too large, which Adam
    alone nearly hides, and cross the network twice.
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
        learning_rate: Peak learning rate.
        schedule: One of `SCHEDULES`.
        steps: Number of the last step.
        warmup_steps: Steps in which the learning rate rises from 0.
        weight_decay: Decoupled decay of weight matrices.
        scales_loss: Whether the loss is scaled, which float16 needs.

    Returns:
        A Keras optimizer that takes gradients summed over the replicas.
    """
    weights = model.trainable_variables
    rate = schedule(learning_rate, steps - warmup_steps)
    if warmup_steps:
        rate = WarmUp(learning_rate, warmup_steps, rate)
    optimizer = Adam(rate, weight_decay=weight_decay or None, epsilon=1e-8)
    # Biases and the scales of norms, as is usual.
    optimizer.exclude_from_weight_decay(
        var_list=[weight for weight in weights if len(weight.shape) < 2]
    )
    if scales_loss:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    optimizer.build(weights)
    return optimizer
