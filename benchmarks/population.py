"""Compares a population with models that are trained one after the other.

Needs JAX and no TensorFlow. All variants run the same steps, in turns: models
that are trained alone, by a program of their own; all models in one program,
one after the other; and all models in one program, at once.

    python -m benchmarks.population
    python -m benchmarks.population --preset=paper --models=30
"""

import os
import pathlib
import statistics
import sys
import time
import typing

from absl import app, flags

from trainers.devices.one_device import OneDevice
from trainers.options.fields import resolve
from trainers.options.layers import with_max_position
from trainers.population import make_population
from trainers.populations.options import PRESETS, PopulationConfig
from trainers.records.results import versions
from trainers.records.workdir import write_json

FLAGS = flags.FLAGS
flags.DEFINE_string("preset", "small", "Preset of trainers.population.")
flags.DEFINE_integer(
    "models", 8, "Number of models of a population.", lower_bound=1
)
flags.DEFINE_integer(
    "steps", 10, "Steps of each model in a round.", lower_bound=1
)
flags.DEFINE_integer(
    "rounds", 3, "Number of turns of each variant.", lower_bound=1
)
flags.DEFINE_string(
    "flags", "", "Other flags of trainers.population, as steps=9,num_layers=1."
)
flags.DEFINE_string(
    "output", "benchmarks/results/population.json", "File for the report."
)

ALONE = "alone"


def make_config(**changes):
    """Makes the configuration that the flags describe, with changes."""
    types = typing.get_type_hints(PopulationConfig)
    given = dict(part.split("=", 1) for part in FLAGS.flags.split(",") if part)
    given = {name: types[name](value) for name, value in given.items()}
    changes = {
        "preset": FLAGS.preset,
        "learning_rates": "3e-4",
        "steps_per_loop": FLAGS.steps,
        **changes,
    }
    config = resolve(PopulationConfig, PRESETS, {**given, **changes})
    return with_max_position(config)


def measure_round(population, first_step):
    """Measures the seconds of some steps of all members."""
    start = time.perf_counter()
    population.run(None, first_step, FLAGS.steps)
    return time.perf_counter() - start


def main(argv):
    """Measures all variants and writes the report."""
    del argv
    models = FLAGS.models
    seeds = f"0-{models - 1}"
    variants = {
        ALONE: {"seeds": "0"},
        "one program, one after the other": {
            "seeds": seeds,
            "members_at_once": 1,
        },
        "one program, at once": {"seeds": seeds, "members_at_once": models},
    }
    populations, compiling = {}, {}
    for name, changes in variants.items():
        population = make_population(make_config(**changes), on_cpu=True)
        # Makes the program of all padded lengths.
        compiling[name] = measure_round(population, 0)
        populations[name] = population
    # Seconds of a step of one model.
    seconds = {name: [] for name in variants}
    for number in range(1, FLAGS.rounds + 1):
        for name, population in populations.items():
            found = measure_round(population, number * FLAGS.steps)
            count = FLAGS.steps * len(population.members)
            seconds[name].append(found / count)
    config = make_config()
    rows = []
    for name, taken in seconds.items():
        hour = 3600 / config.steps
        rows.append(
            {
                "variant": name,
                "first_round_seconds": compiling[name],
                "milliseconds_per_step_of_a_model": [1e3 * s for s in taken],
                "models_per_hour": hour / statistics.median(taken),
                "ratio_to_alone": statistics.median(
                    alone / s
                    for alone, s in zip(seconds[ALONE], taken, strict=True)
                ),
            }
        )
        print(
            f"{name:34s}{rows[-1]['models_per_hour']:10.3f} models of "
            f"{config.steps} steps per hour, {rows[-1]['ratio_to_alone']:6.2f} "
            "times as many as alone",
            flush=True,
        )
    path = pathlib.Path(FLAGS.output)
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["python -m benchmarks.population", *sys.argv[1:]]
    write_json(
        path,
        {
            "command": " ".join(command),
            "versions": versions(),
            "cores": os.cpu_count(),
            "devices": list(OneDevice().devices),
            "models": models,
            "task": config.task,
            "encoding": config.encoding,
            "rows": rows,
        },
    )
    print(f"report: {path}")


if __name__ == "__main__":
    app.run(main)
