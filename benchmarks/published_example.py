"""Runs the example of the published code of Ruoss et al. (2023), with JAX.

It trains the example in your copy of
https://github.com/google-deepmind/randomized_positional_encodings for `--steps`
steps and evaluates it. `benchmarks.published_code` measures this command.

    pip install -e '.[tensorflow,published]'
    python -m benchmarks.published_example --copy=~/src --steps=1000
"""

import contextlib
import dataclasses
import importlib
import io
import pathlib
import sys
from unittest import mock

from absl import app, flags

FLAGS = flags.FLAGS
PACKAGE = "randomized_positional_encodings"
flags.DEFINE_string("copy", None, f"Folder that contains {PACKAGE}.")
flags.DEFINE_integer("steps", 1000, "Number of training steps.", lower_bound=1)

PUBLISHED = {
    "SinusoidalEncoding": ("SIN_COS", {}),
    "RoPE": ("ROTARY", {}),
    "ALiBi": ("ALIBI", {}),
    "RelativeEncoding": ("RELATIVE", {}),
    "RandomizedRelativeEncoding": (
        "NOISY_RELATIVE",
        {"noise_max_length": 2048},
    ),
}
"""Published names and parameters of our encodings."""


def import_example():
    """Imports the published example from the folder `--copy`."""
    if FLAGS.copy is None:
        raise app.UsageError(
            "--copy: clone https://github.com/google-deepmind/"
            f"{PACKAGE} and pass the folder that contains the clone."
        )
    folder = pathlib.Path(FLAGS.copy).expanduser()
    if not (folder / PACKAGE / "experiments" / "example.py").exists():
        raise app.UsageError(
            f"--copy={FLAGS.copy}: {folder / PACKAGE} is not a clone of the "
            "published code."
        )
    sys.path.insert(0, str(folder))
    return importlib.import_module(f"{PACKAGE}.experiments.example")


def read_options(example, encoding, **changes):
    """Returns the training options of the example, a dataclass.

    Args:
        example: The module of the example.
        encoding: str, one of `PUBLISHED`.
        **changes: Other values of options.
    """
    name, parameters = PUBLISHED[encoding]
    # The example calls the worker with its options.
    with (
        mock.patch.dict(
            example._ARCHITECTURE_PARAMS,
            positional_encodings=name,
            positional_encodings_params=parameters,
        ),
        mock.patch.object(example.training, "TrainingWorker") as worker,
        contextlib.redirect_stdout(io.StringIO()),
    ):
        worker.return_value.run.return_value = [], [{"accuracy": 0}] * 100, {}
        example.main([])
    (options,) = worker.call_args.args
    return dataclasses.replace(options, **changes)


def main(argv):
    """Trains and evaluates the example."""
    del argv
    example = import_example()
    options = read_options(
        example, "RandomizedRelativeEncoding", training_steps=FLAGS.steps
    )
    worker = example.training.TrainingWorker(options, use_tqdm=True)
    _, results, _ = worker.run()
    unseen = [result["accuracy"] for result in results if result["length"] > 40]
    print(f"mean accuracy at lengths above 40: {sum(unseen) / len(unseen):.3f}")


if __name__ == "__main__":
    app.run(main)
