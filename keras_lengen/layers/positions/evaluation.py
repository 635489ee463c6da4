"""Declaration of the positions that a sampler gives in evaluation."""

from typing import Any

from keras_lengen.checks.arguments import Choice


class Evaluation(Choice[str]):
    """One of several positions in evaluation, which only one function changes.

    Keras compiles a program for `predict` and `evaluate` when it is first
    called. A program would not notice that an attribute has changed.
    """

    def __set__(self, instance: Any, value: Any) -> None:
        if self.name in vars(instance):
            raise AttributeError(
                f"{self.name} of a {type(instance).__name__} cannot be "
                "assigned, because compiled programs would keep the old "
                f"value: call keras_lengen.models.set_evaluation(model, "
                f"{value!r})."
            )
        super().__set__(instance, value)

    def change(self, instance: Any, value: str) -> None:
        """Changes the value of a sampler that no compiled program has."""
        vars(instance)[self.name] = self.check(self.name, value)
