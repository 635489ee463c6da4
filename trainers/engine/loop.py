"""The training loop of both backends, under every strategy."""

import functools
import math
import time

import keras

from trainers.errors import TrainingError


def train(
    step,
    checkpoints,
    *,
    steps,
    steps_per_loop,
    checkpoint_every,
    evaluate_every=0,
    callbacks=(),
    check=lambda before_stopping: None,
):
    """Trains from the newest checkpoint to `steps` steps.

    Args:
        step: The `TrainingStep` of the backend.
        checkpoints: The `Checkpoints` of the run.
        steps: int. Number of the last step.
        steps_per_loop: int. Steps that the devices compute without returning
            to the host.
        checkpoint_every: int. Steps between checkpoints; the last step always
            gets one.
        evaluate_every: int. Steps between evaluations; 0: none.
        callbacks: Keras callbacks. The logs of `on_train_begin` hold the
            `step` that training starts from; those of `on_train_batch_end`,
            called with the number of the last step, the mean `loss` of the
            steps since the last call and the `seconds` spent training.
            `on_test_begin` is called when it is time to evaluate, and again
            when a run resumes at that step.
        check: Called after every loop with a function that saves the state;
            raises an error to stop.

    Returns:
        Seconds spent training, over all resumptions.

    Raises:
        TrainingError: If a loss is not finite, or a checkpoint cannot be
            written.
    """
    done, seconds = checkpoints.restore()
    callbacks = keras.callbacks.CallbackList(
        list(callbacks), model=step.model, steps=steps
    )
    callbacks.on_train_begin({"step": done, "seconds": seconds})
    if done < steps:
        iterator = step.iterate(done, steps)
    while done < steps:
        if evaluate_every and done and done % evaluate_every == 0:
            callbacks.on_test_begin({"step": done, "seconds": seconds})
        every = (steps_per_loop, checkpoint_every, evaluate_every or steps)
        until = min(steps, *(done + every_ - done % every_ for every_ in every))
        start = time.monotonic()
        losses = step.run(iterator, done, until - done)
        seconds += time.monotonic() - start
        _check_finite(losses, done, checkpoints)
        done = until
        loss = float(losses.mean())
        callbacks.on_train_batch_end(done, {"loss": loss, "seconds": seconds})
        save = functools.partial(checkpoints.save, done, seconds)
        if done == steps or done % checkpoint_every == 0:
            save()
        check(save)
    callbacks.on_train_end({"step": done, "seconds": seconds})
    return seconds


def _check_finite(losses, first_step, checkpoints):
    for index, loss in enumerate(losses):
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss of step {first_step + index + 1} is {loss}; the "
                f"last good checkpoint is {checkpoints.latest}: lower the "
                "learning rate or change the seed."
            )
