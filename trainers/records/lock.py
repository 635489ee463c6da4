"""One run a directory: a claim on `run.lock` that ends with its process."""

import contextlib

from trainers.errors import ConfigError
from trainers.records.claims import NoLocksError, claim, read_claim


@contextlib.contextmanager
def lock_directory(path):
    """Claims a working directory.

    Args:
        path: `pathlib.Path` of the directory, which exists.

    Raises:
        ConfigError: If another process holds the claim, or the file system has
            no locks.
        OSError: If the file of the claim cannot be written.
    """
    file = path / "run.lock"
    with contextlib.ExitStack() as stack:
        try:
            claimed = stack.enter_context(claim(file))
        except NoLocksError as error:
            raise ConfigError(
                f"the file system of {path} has no locks ({error.strerror}), "
                "so that two runs could write there at once: choose a "
                "--workdir on another one."
            ) from None
        if claimed is None:
            raise ConfigError(
                f"{path} is in use by {_name_holder(read_claim(file))}: wait "
                "for its end, or choose another --workdir."
            )
        yield


def _name_holder(about):
    try:
        return (
            f"process {about['process']} on {about['host']}, which started at "
            f"{about['started']}"
        )
    except (KeyError, TypeError):
        # Between locking and writing, or after its end.
        return "another process"
