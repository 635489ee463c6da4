"""The random draws of a model on JAX as functions of integers."""

import jax

from trainers.engine.seed_states import find_seed_states


def draw_states(model, *numbers):
    """Returns values of the variables that are not trained, for one call.

    The next draws of the model are a function of integers.

    Args:
        model: Keras model.
        *numbers: Integers or scalar integer arrays that name the draw.
    """
    key = fold_in(0, *numbers)
    states = {id(state): None for state in find_seed_states(model)}
    words = jax.random.bits(key, (max(len(states), 1), 2))
    drawn = dict(zip(states, words, strict=False))
    return [
        drawn[id(variable)].astype(variable.dtype)
        if id(variable) in drawn
        else variable.value
        for variable in model.non_trainable_variables
    ]


def fold_in(stream, *numbers):
    """Returns a key that is different for each sequence of integers.

    Args:
        stream: int, at least 0. What the key is for.
        *numbers: Integers or scalar integer arrays.
    """
    key = jax.random.key(stream)
    for number in numbers:
        key = jax.random.fold_in(key, number)
    return key
