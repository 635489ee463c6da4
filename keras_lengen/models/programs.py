"""Compiled programs of a model, made anew where the model has changed."""

import keras


class Programs:
    """Keeps compiled programs as long as they compute what the model does.

    A program takes from its model, when it is compiled, everything but the
    values of weights. Where any of that has changed, by `quantize`,
    `enable_lora`, another dtype policy or weights that are trained or not, all
    programs are forgotten.
    """

    def __init__(self):
        self._state = None
        self._programs = {}

    def get(self, model, key, make):
        """Returns the program of a key.

        Args:
            model: The model, always the same.
            key: What the program is kept by.
            make: Function that makes the program where there is none.
        """
        state = _State(model)
        if state != self._state:
            self._state = state
            self._programs = {}
        if key not in self._programs:
            self._programs[key] = make()
        return self._programs[key]


class _State:
    """What a program takes from a model beside the values of weights."""

    def __init__(self, model):
        # Kept, so that no other variable gets the identity of one of them.
        self.variables = list(model.variables)
        self.others = (
            [id(variable) for variable in self.variables],
            [variable.trainable for variable in self.variables],
            repr(model.get_config()),
            [
                (
                    type(layer),
                    layer.dtype_policy.name,
                    getattr(layer, "lora_enabled", False),
                    getattr(layer, "quantization_mode", None),
                )
                for layer in model._flatten_layers()
            ],
        )

    def __eq__(self, other):
        return isinstance(other, _State) and self.others == other.others


def compiled(function, variables, jit_compile):
    """A function of tensors that reads variables, compiled by the backend."""
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.function(function, jit_compile=jit_compile)
    if backend == "jax":
        import jax

        def stateless(values, *args):
            states = zip(variables, values, strict=True)
            with keras.StatelessScope(state_mapping=list(states)):
                return function(*args)

        program = jax.jit(stateless) if jit_compile else stateless
        return lambda *args: program([v.value for v in variables], *args)
    return function
