"""The environment of a command that is given in a shell."""

import os


def shell_environment():
    """Returns a copy of the environment without what imports here have set."""
    environment = {**os.environ}
    # Importing JAX sets it to 1.
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    return environment
