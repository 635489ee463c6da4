"""Compares training with the published code of Ruoss et al. (2023).

The published code is your own copy, which runs on JAX. Two comparisons:

- Steps of training per second for several encodings. The models have the same
  sizes, batches of 128 x 41 tokens, Adam and clipping, and take turns in one
  process.
- The whole job of the published example: `--steps` steps of training with
  lengths 1 to 40, and an evaluation with 512 examples of each length up to 100.
  The programs take turns, each in a process of its own.

    git clone https://github.com/google-deepmind/randomized_positional_encodings
    pip install -e '.[tensorflow,published]'
    python -m benchmarks.published_code --copy=.
"""

import importlib.metadata
import statistics
import sys
import tempfile

import jax
from absl import app, flags

from benchmarks.encoders import make_encoder, make_training_step
from benchmarks.measure import (
    DEFINE_count,
    DEFINE_names,
    compare_speeds,
    run_measured,
    time_in_turns,
    write_report,
)
from benchmarks.published_example import (
    PUBLISHED,
    import_example,
    read_options,
)

FLAGS = flags.FLAGS
DEFINE_names("encodings", list(PUBLISHED), "Encodings to measure.", PUBLISHED)
DEFINE_count("rounds", 5, "Number of turns of every model.")
DEFINE_count("repeats", 3, "Number of training steps in a turn.")
flags.DEFINE_integer("jobs", 1, "Number of turns of the job.", lower_bound=0)
flags.DEFINE_list("flags", [], "Further flags of our trainer, without --.")
flags.DEFINE_string(
    "output", "benchmarks/results/published_code.json", "File for the report."
)

BATCH_SIZE, LENGTH = 128, 40


def make_published_step(example, encoding):
    """Makes a function that trains the published model for one step."""
    options = read_options(example, encoding)
    training = example.training
    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    batch = options.task.sample_batch(
        keys[0], batch_size=BATCH_SIZE, length=LENGTH
    )
    optimizer = training.optax.chain(
        training.optax.clip_by_global_norm(options.max_grad_norm),
        training.optax.adam(options.learning_rate),
    )
    params = options.model.init(keys[1], batch["input"])
    state = {"params": params, "opt_state": optimizer.init(params)}

    def step():
        params, opt_state, (loss, _, _) = training._update_parameters(
            rng_key=keys[2],
            batch=batch,
            model_apply_fn=options.model.apply,
            loss_fn=options.loss_fn,
            accuracy_fn=options.accuracy_fn,
            optimizer=optimizer,
            is_autoregressive=options.is_autoregressive,
            **state,
        )
        state.update(params=params, opt_state=opt_state)
        return loss

    return step


def measure_steps():
    """Measures steps per second of every encoding; returns rows."""
    example = import_example()
    rows = []
    for encoding in FLAGS.encodings:
        seconds = time_in_turns(
            {
                "published": make_published_step(example, encoding),
                "ours": make_training_step(
                    make_encoder(encoding), BATCH_SIZE, LENGTH + 1, clip_norm=1
                ),
            },
            rounds=FLAGS.rounds,
            repeats=FLAGS.repeats,
        )
        ratio = compare_speeds(seconds["ours"], seconds["published"])
        row = {"encoding": encoding, "speed_of_published": ratio}
        for name, times in seconds.items():
            row[f"{name}_steps_per_second"] = 1 / statistics.median(times)
        rows.append(row)
        print(
            f"{encoding:28s}{row['published_steps_per_second']:6.2f} published"
            f"{row['ours_steps_per_second']:6.2f} ours, steps/s"
            f"{ratio:8.2f} times as fast",
            flush=True,
        )
    return rows


def measure_jobs():
    """Measures the whole job of both programs; returns rows."""
    commands = {
        "published": [
            *("-m", "benchmarks.published_example", f"--copy={FLAGS.copy}"),
            f"--steps={FLAGS.steps}",
        ],
        "ours": [
            *("-m", "trainers.algorithmic", "--preset=paper"),
            "--task=missing_duplicate_string",
            "--encoding=RandomizedRelativeEncoding",
            *(f"--steps={FLAGS.steps}", "--learning_rate=1e-3"),
            *("--test_lengths=1-100", "--evaluation_examples=512"),
            *("--evaluate_every=0", "--buckets=40"),
            *(f"--{flag}" for flag in FLAGS.flags),
        ],
    }
    rows = []
    for _ in range(FLAGS.jobs):
        for name, command in commands.items():
            with tempfile.TemporaryDirectory() as folder:
                workdir = [f"--workdir={folder}/run"] if name == "ours" else []
                measured = run_measured([sys.executable, *command, *workdir])
            rows.append({"program": name, "command": command, **measured})
            print(
                f"{name}: {measured['seconds']:.0f} s, "
                f"{measured['processor_seconds']:.0f} s of processors, "
                f"{measured['peak_gibibytes']:.1f} GiB",
                flush=True,
            )
    return rows


def main(argv):
    """Measures steps and jobs, and writes the report."""
    del argv
    rows, jobs = measure_steps(), measure_jobs()
    if jobs:
        published, ours = (
            statistics.median(
                row["seconds"] for row in jobs if row["program"] == name
            )
            for name in ("published", "ours")
        )
        print(f"The whole job: {published / ours:.2f} times as fast.")
    content = {
        "packages": {
            name: importlib.metadata.version(name)
            for name in ("jax", "dm-haiku", "optax")
        },
        "rows": rows,
        "jobs": jobs,
    }
    write_report(FLAGS.output, "benchmarks.published_code", content)


if __name__ == "__main__":
    app.run(main)
