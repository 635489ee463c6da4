"""Classes that break a promise, which the conformance checks must name."""

import keras


class Wrong(dict):
    """Classes and their broken promises, by the names of the classes."""

    def add(self, promise):
        """Returns a decorator that registers a class."""

        def register(cls):
            self[cls.__name__] = cls, promise
            return keras.saving.register_keras_serializable(
                package=cls.__module__
            )(cls)

        return register
