"""Cache of a model's compiled programs, emptied when the model changes."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import keras

from keras_lengen.types import Tensor

T = TypeVar("T")


class Programs:
    """Keeps compiled programs until the model changes.

    Compiling a program fixes everything about the model except the values of
    its weights. If anything else changes, for example by `quantize`,
    `enable_lora`, a new dtype policy, or freezing weights, all programs are
    discarded.
    """

    def __init__(self) -> None:
        self._state: _State | None = None
        self._programs: dict[Hashable, Any] = {}

    def get(
        self, model: keras.Model, key: Hashable, make: Callable[[], T]
    ) -> T:
        """Returns the program with this key, compiled if there is none.

        Args:
            model: The model; the same in every call.
            key: Hashable. Identifies the program.
            make: Function without arguments that makes the program.

        Returns:
            What `make` returned.
        """
        state = _State(model)
        if state != self._state:
            self._state = state
            self._programs = {}
        if key not in self._programs:
            self._programs[key] = make()
        return self._programs[key]


class _State:
    """Everything about a model that a compiled program depends on.

    The values of weights are not included.
    """

    def __init__(self, model: keras.Model) -> None:
        # Keeps the variables alive, so that no new one can get the same id.
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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _State) and self.others == other.others


def forget_programs(model: keras.Model) -> None:
    """Forgets programs of Keras and KerasHub, which would compute as before."""
    for name in ("train", "test", "predict", "generate"):
        if hasattr(model, f"{name}_function"):
            setattr(model, f"{name}_function", None)


def compile_function(
    function: Callable[..., Any], variables: Sequence[Any], jit_compile: bool
) -> Callable[..., Any]:
    """Compiles a function of tensors with the backend's compiler.

    Args:
        function: Function of tensors that reads variables.
        variables: List of the variables that it reads.
        jit_compile: bool. Whether XLA compiles it.

    Returns:
        Function of the same arguments. On a backend other than TensorFlow and
        JAX, the function itself.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.function(function, jit_compile=jit_compile, autograph=False)
    if backend == "jax":
        import jax

        def stateless(values: Sequence[Tensor], *args: Any) -> Any:
            states = zip(variables, values, strict=True)
            with keras.StatelessScope(state_mapping=list(states)):
                return function(*args)

        program = jax.jit(stateless) if jit_compile else stateless
        return lambda *args: program([v.value for v in variables], *args)
    return function
