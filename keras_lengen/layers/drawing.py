"""Layers that draw random numbers, and draw them again where Keras asks."""

import contextlib

import keras


class DrawingLayer(keras.layers.Layer):
    """A layer that Keras may compute twice, forward and backward.

    Under `keras.RematScope` a layer's `call` runs again in the backward pass.
    Random generators have moved on by then: here both runs start from states
    that were drawn before either.
    """

    def parts_scope(self):
        """A scope to make and to call the parts of the layer in.

        What is computed twice as a whole gains nothing where its parts are
        too, and Keras' own layers cannot be in a graph of TensorFlow.
        """
        whole = self._remat_mode is not None and self._remat_mode.mode == "full"
        return (
            keras.RematScope(mode=None) if whole else contextlib.nullcontext()
        )

    def rematerialized_call(self, layer_call, *args, **kwargs):
        def repeatable(*tensors):
            given = iter(tensors)
            arguments, keywords, values = keras.tree.pack_sequence_as(
                structure,
                [
                    next(given) if _has_gradient(leaf) else leaf
                    for leaf in leaves
                ],
            )
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
            id(generator.state): _draw_state(generator)
            for generator in find_seed_generators(self)
        }
        # All of them: a scope hides those of the scope around it.
        variables = self.variables
        values = [
            states[id(variable)]
            if id(variable) in states
            else keras.ops.copy(variable)
            for variable in variables
        ]
        structure = (args, kwargs, values)
        leaves = keras.tree.flatten(structure)
        # What has a gradient must be an argument, and nothing else may be:
        # TensorFlow takes no keywords, and JAX makes symbols of flags.
        return lambda *_, **__: rematerialized(*filter(_has_gradient, leaves))


class Dropout(DrawingLayer, keras.layers.Dropout):
    """Keras' dropout, which drops the same where it is computed twice.

    Draws and factor are at least float32: TensorFlow draws numbers of the
    inputs' dtype, of which bfloat16 has 128 between 0 and 1.
    """

    def call(self, inputs, training=False):
        dtype = keras.backend.standardize_dtype(inputs.dtype)
        if training and self.rate and dtype in ("bfloat16", "float16"):
            inputs = keras.ops.cast(inputs, "float32")
        outputs = super().call(inputs, training=training)
        return keras.ops.cast(outputs, dtype)


def find_seed_generators(layer):
    """The random generators of a layer and of the layers in it."""
    return [
        generator
        for each in layer._flatten_layers()
        for generator in each._seed_generators
    ]


def _has_gradient(value):
    return keras.ops.is_tensor(value) and keras.backend.is_float_dtype(
        keras.backend.standardize_dtype(value.dtype)
    )


def _draw_state(generator):
    """A state drawn from a generator, which moves on by one draw."""
    # Counting on from the generator's own state would repeat its next draws.
    state = keras.random.randint((2,), 0, 2**24, dtype="int32", seed=generator)
    return keras.ops.cast(state, generator.state.dtype)
