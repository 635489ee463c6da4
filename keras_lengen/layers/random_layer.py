"""Random draws that can be repeated, and that differ between replicas."""

import contextlib
import dataclasses
import weakref
from collections.abc import Callable
from typing import Any

import keras

from keras_lengen.types import Tensor, TensorLike

REPLICA_STEP = 1_640_531_527
"""Distance of the seeds of two replicas. Large, because users choose small
seeds for their layers."""


class SeedGenerator(keras.random.SeedGenerator):
    """Keras' generator of seeds, whose seeds differ between replicas.

    Each replica of a strategy of TensorFlow has a copy of the state, and all
    copies are equal.
    """

    def next(self, ordered: bool = True) -> Tensor:
        return make_seed_of_replica(super().next(ordered=ordered))


def make_seed_of_replica(seed: Tensor) -> Tensor:
    """Makes a seed that differs between the replicas of a strategy.

    Args:
        seed: Integers `(2,)`, equal in all replicas.

    Returns:
        Integers `(2,)`; the same seed in the first replica, without a strategy,
        and on other backends, where a program draws for the whole batch.
    """
    if keras.backend.backend() != "tensorflow":
        return seed
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return seed
    replica = tf.cast(context.replica_id_in_sync_group, seed.dtype)
    return seed + replica * tf.constant([REPLICA_STEP, 0], seed.dtype)


_STATE = "seed_generator_state_"
"""Name of the state of a random generator in a file, before its number."""


class RandomLayer(keras.layers.Layer):
    """Layer that draws the same numbers when Keras computes it twice.

    Under `keras.RematScope`, the `call` of a layer runs again in the backward
    pass. By then the random generators have advanced. This class therefore
    starts both runs from the same states, drawn before the first run.
    """

    def symbolic_call(self, *args: Any, **kwargs: Any) -> Any:
        # A layer of a functional model, which Keras copies by itself.
        for part in self._flatten_layers():
            if isinstance(part, RandomLayer):
                if not hasattr(part, "owners"):
                    part.owners = weakref.WeakSet()
                part.owners.add(self)
        return super().symbolic_call(*args, **kwargs)

    # Keras does not save the states of random generators.
    def save_own_variables(self, store: Any) -> None:
        super().save_own_variables(store)
        for index, generator in enumerate(self._seed_generators):
            store[f"{_STATE}{index}"] = generator.state

    def load_own_variables(self, store: Any) -> None:
        names = list(store.keys())
        states = [name for name in names if name.startswith(_STATE)]
        super().load_own_variables(
            {name: store[name] for name in names if name not in states}
        )
        # Files of other samplers, and of Keras, have none.
        for index, generator in enumerate(self._seed_generators):
            if f"{_STATE}{index}" in states:
                generator.state.assign(store[f"{_STATE}{index}"])

    def parts_scope(self) -> contextlib.AbstractContextManager[Any]:
        """Makes the scope in which the layer builds and calls its parts.

        If the whole layer is rematerialized, the scope turns this off for its
        parts: a second time would save no memory, and Keras' own layers cannot
        be rematerialized in a TensorFlow graph.

        Returns:
            A context manager.
        """
        whole = self._remat_mode is not None and self._remat_mode.mode == "full"
        return (
            keras.RematScope(mode=None) if whole else contextlib.nullcontext()
        )

    def rematerialized_call(
        self, layer_call: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Callable[..., Any]:
        # Their tensors are hidden from Keras.
        kinds: dict[str, Any] = {
            name: type(value)
            for name, value in kwargs.items()
            if dataclasses.is_dataclass(value)
        }
        kwargs = {
            name: vars(value) if name in kinds else value
            for name, value in kwargs.items()
        }

        def repeatable(*tensors: Tensor) -> Any:
            given = iter(tensors)
            arguments, keywords, values = keras.tree.pack_sequence_as(
                structure,
                [
                    next(given) if _has_gradient(leaf) else leaf
                    for leaf in leaves
                ],
            )
            for name, kind in kinds.items():
                keywords[name] = kind(**keywords[name])
            mapping = zip(variables, values, strict=True)
            with (
                self.parts_scope(),
                keras.StatelessScope(state_mapping=list(mapping)),
            ):
                return layer_call(*arguments, **keywords)

        rematerialized = super().rematerialized_call(
            repeatable, *args, **kwargs
        )
        if rematerialized is repeatable:
            return layer_call
        states = {
            id(generator.state): draw_state(generator)
            for generator in find_seed_generators(self)
        }
        # All variables, because a scope hides the values of the scope around
        # it.
        variables = self.variables
        values = [
            states[id(variable)]
            if id(variable) in states
            else keras.ops.copy(variable)
            for variable in variables
        ]
        structure = (args, kwargs, values)
        leaves = keras.tree.flatten(structure)
        # Tensors with a gradient must be arguments, and nothing else may be
        # one: TensorFlow takes no keyword arguments, and JAX turns flags into
        # symbols.
        return lambda *_, **__: rematerialized(*filter(_has_gradient, leaves))


class Dropout(RandomLayer, keras.layers.Dropout):
    """Keras' dropout, with the same draws when it is computed twice.

    Draws and scaling are at least float32: TensorFlow draws numbers of the
    inputs' dtype, and in bfloat16 it draws only 128 different numbers between
    0 and 1.

    With TensorFlow, `rate` is rounded to a multiple of `2 ** -16`, because a
    number of 32 bits is drawn for two features.
    """

    def call(self, inputs: TensorLike, training: bool | None = False) -> Tensor:
        if not training or not self.rate:
            return inputs
        dtype = keras.backend.standardize_dtype(inputs.dtype)
        if dtype in ("bfloat16", "float16"):
            inputs = keras.ops.cast(inputs, "float32")
        if keras.backend.backend() == "tensorflow":
            outputs = self._drop(inputs)
        else:
            outputs = super().call(inputs, training=training)
        return keras.ops.cast(outputs, dtype)

    def _drop(self, inputs: Tensor) -> Tensor:
        """Drops features with half of Keras' draws, and without a selection.

        On a CPU, a selection and its gradient take longer than a product.
        """
        import tensorflow as tf

        *others, width = keras.ops.shape(inputs)
        seed = make_seed_of_replica(self.seed_generator.next())
        seed = keras.ops.cast(seed, "int32")
        draws = tf.random.stateless_uniform(
            (*others, (width + 1) // 2), seed, None, None, "int32"
        )
        dropped = min(round(self.rate * 2**16), 2**16 - 1)
        # The first 16 bits of each draw, and the last ones.
        low = keras.ops.bitwise_and(draws, 2**16 - 1)
        kept = keras.ops.concatenate(
            [draws >= dropped * 2**16 - 2**31, low >= dropped],
            axis=-1,
        )
        kept = keras.ops.cast(kept[..., :width], inputs.dtype)
        return inputs * (kept * (2**16 / (2**16 - dropped)))


def find_seed_generators(layer: Any) -> list[Any]:
    """Finds the random generators of a layer and of the layers in it.

    Returns:
        List of `keras.random.SeedGenerator`.
    """
    return [
        generator
        for each in layer._flatten_layers()
        for generator in each._seed_generators
    ]


def _has_gradient(value: Any) -> bool:
    return keras.ops.is_tensor(value) and keras.backend.is_float_dtype(
        keras.backend.standardize_dtype(value.dtype)
    )


def draw_state(generator: Any) -> Tensor:
    """Draws a new state from a generator, which advances by one draw."""
    # A state made by advancing the generator's own would repeat the draws that
    # the generator gives next.
    state = keras.random.randint((2,), 0, 2**24, dtype="int32", seed=generator)
    return keras.ops.cast(state, generator.state.dtype)
