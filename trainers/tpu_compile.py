"""Compiles a trainer's steps for a TPU, on a machine that has none.

    python -m trainers.tpu_compile --topology=v5e:2x2 --encoding=RandomizedRoPE
    python -m trainers.tpu_compile --trainer=enwik8 --encoding=ALiBi
    python -m trainers.tpu_compile --table=true --jobs=2

Says of each program whether it compiles, whether it fits into a chip's memory,
what it computes and moves, and how long a step takes at least. Results go to
one file, a line for each program; those that are in it are not compiled again.
"""

import concurrent.futures
import dataclasses
import importlib.metadata
import multiprocessing
import os
import signal
import threading
import time

import keras
import tensorflow as tf

from trainers.errors import ConfigError, TrainingError
from trainers.experiment import padded_lengths
from trainers.options.command import run
from trainers.options.fields import (
    check_choice,
    check_options,
    option,
    options,
    resolve,
)
from trainers.options.layers import with_max_position
from trainers.tpu import table as tpu_table
from trainers.tpu.compiler import (
    COMPILER,
    Topology,
    compile_program,
    step_seconds,
)
from trainers.tpu.programs import MODES, lower, trainers


@dataclasses.dataclass(frozen=True)
class TpuCompileConfig:
    """Flags of this command; those of trainers that are empty are theirs."""

    preset: str = option("small", "Set of defaults of the trainer.")
    topology: str = option("v5e:2x2", "Chips: v5e:2x2, v4:2x2x1, ...")
    trainer: str = option(
        "algorithmic", f"Trainer to compile: {', '.join(trainers())}."
    )
    mode: str = option("all", "Steps to compile.", choices=("all", *MODES))
    lengths: str = option(
        "longest", "Padded lengths to compile.", choices=("longest", "all")
    )
    task: str = option("", "Task of the algorithmic trainer.")
    encoding: str = option("RandomizedRoPE", "Encoding, by name or call.")
    sampler: str = option("", "Position sampler, by name or call.")
    attention: str = option("", "Attention, by name.")
    max_position: int = option(0, "Range of positions.", least=0)
    draw: str = option("", "Draws of positions: per model or per layer.")
    precision: str = option("mixed_bfloat16", "float32 or mixed_bfloat16.")
    batch_size: int = option(0, "Examples in a global batch.", least=0)
    gradient_accumulation_steps: int = option(
        0,
        "Parts that each chip divides its batch into, to save memory.",
        least=0,
    )
    train_length: str = option("", "Trained lengths.")
    test_lengths: str = option("", "Further evaluated lengths.")
    table: str = option(
        "false",
        "true: compile the whole table instead of one trainer.",
        choices=("true", "false"),
    )
    jobs: int = option(
        1, "Programs to compile at a time; large ones take 10 GB each."
    )
    force: str = option(
        "false",
        "true: compile again what is in the file.",
        choices=("true", "false"),
    )
    results: str = option(
        "benchmarks/results/tpu_compile.jsonl", "File of results."
    )

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        Topology(self.topology)
        check_choice("--trainer", self.trainer, tuple(trainers()))
        check_options(self)


PRESETS = {"small": {}, "paper": {}}


@dataclasses.dataclass(frozen=True)
class Program:
    """A step to compile.

    Attributes:
        topology: Name of the slice.
        trainer: Name of the trainer.
        mode: `"train"` or `"evaluate"`.
        tokens: Padded length.
        config: Configuration of the trainer.
        experiment: The `Experiment` of that name.
    """

    topology: str
    trainer: str
    mode: str
    tokens: int
    config: object
    experiment: object = dataclasses.field(compare=False)

    @property
    def key(self):
        """All that determines the program, but for versions."""
        told = dataclasses.asdict(self.config)
        return {
            "topology": self.topology,
            "trainer": self.trainer,
            "mode": self.mode,
            "tokens": self.tokens,
            **{
                name: told[name]
                for name in tpu_table.determines()
                if name in told
            },
        }


def main(config):
    """Compiles what the configuration says and reports where results are."""
    Topology(config.topology).devices()
    results = tpu_table.Results(config.results)
    if config.table == "true":
        wanted = [
            program
            for flags in tpu_table.rows()
            for program in programs(resolve(TpuCompileConfig, PRESETS, flags))
        ]
    else:
        wanted = programs(config)
    missing = [
        program
        for program in dict.fromkeys(wanted)
        if config.force == "true" or program.key not in results
    ]
    if len(missing) < len(wanted):
        print(
            f"{len(wanted) - len(missing)} of {len(wanted)} programs are in "
            f"{config.results}: --force=true compiles them again."
        )
        for program in wanted if config.table == "false" else ():
            if program not in missing:
                print(tpu_table.describe(results[program.key]))
    compile_all(missing, results, config.jobs)
    results.write_report()
    found = [results[program.key] for program in wanted]
    failed = sum(row["status"] == "failed" for row in found)
    if failed:
        raise TrainingError(
            f"{failed} of {len(found)} programs do not compile, see "
            f"{config.results}."
        )
    refused = [row for row in found if row["status"] == "refused"]
    if refused and config.table == "false":
        raise ConfigError(refused[0]["reason"])


def programs(config):
    """The programs that a configuration asks for."""
    trainer = trainers()[config.trainer]
    known = {
        field.name
        for some in trainers().values()
        for field in dataclasses.fields(some.config)
    }
    given = {
        name: value
        for name, value in dataclasses.asdict(config).items()
        if name in known and value
    }
    for name in given.keys() - options(trainer.config).keys():
        raise ConfigError(f"--{name} is no flag of {config.trainer}.")
    given["strategy"] = "tpu"
    of_trainer = with_max_position(
        resolve(trainer.config, trainer.presets, given)
    )
    first = -1 if config.lengths == "longest" else 0
    return [
        Program(
            config.topology, config.trainer, mode, tokens, of_trainer, trainer
        )
        for mode in MODES
        if config.mode in ("all", mode)
        for tokens in _padded_lengths(trainer, of_trainer, mode)[first:]
    ]


def _padded_lengths(experiment, config, mode):
    return padded_lengths(config, experiment.make_problem(config), mode)


def compile_all(missing, results, jobs):
    """Compiles programs, several at a time, and keeps each when it is done.

    Raises:
        TrainingError: If a process that compiles is gone.
    """
    start, done = time.monotonic(), 0
    # TensorFlow's memory only grows: now and then, the processes are new.
    size = 20 * jobs
    for first in range(0, len(missing), size):
        for row in _compiled(missing[first : first + size], jobs):
            results.add(row)
            done += 1
            left = (time.monotonic() - start) / done * (len(missing) - done)
            print(
                f"{done}/{len(missing)} {tpu_table.describe(row)}; "
                f"{left / 60:.0f} min left",
                flush=True,
            )


def _compiled(some, jobs):
    """The rows of programs, as they are done."""
    with concurrent.futures.ProcessPoolExecutor(
        jobs,
        # TensorFlow does not survive a fork.
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_end_with,
        initargs=(os.getpid(),),
    ) as pool:
        futures = [pool.submit(compile_one, program) for program in some]
        try:
            for future in concurrent.futures.as_completed(futures):
                yield future.result()
        except concurrent.futures.process.BrokenProcessPool:
            raise TrainingError(
                "a process that compiles was killed, perhaps for want of "
                "memory: the same command goes on, with --jobs=1 in less."
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _end_with(parent):
    """Ends this process when its parent ends, however that comes."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def compile_one(program):
    """The row of a program: what it is, and what the compiler says of it."""
    experiment, topology = program.experiment, Topology(program.topology)
    row = {
        **program.key,
        "programs": {
            mode: len(_padded_lengths(experiment, program.config, mode))
            for mode in MODES
        },
        "versions": versions(),
    }
    start = time.monotonic()
    try:
        text, examples, trained = lower(
            experiment,
            program.config,
            program.mode,
            program.tokens,
            topology.chips,
        )
    except ConfigError as error:
        return {**row, "status": "refused", "reason": str(error)}
    except Exception as error:
        return {**row, "status": "failed", "reason": _reason(error)}
    row |= {
        "examples_per_chip": examples,
        "trained_parameters": trained,
        "lower_seconds": round(time.monotonic() - start, 1),
    }
    try:
        found = compile_program(text, topology)
    except RuntimeError as error:
        return {**row, "status": "failed", "reason": _reason(error)}
    row |= {
        **found,
        "memory_limit": topology.chip.memory,
        "step_seconds": step_seconds(found, topology),
    }
    reason = check(row)
    return {**row, "status": "failed" if reason else "compiled"} | (
        {"reason": reason} if reason else {}
    )


def _reason(error):
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


def check(row):
    """Why a program that compiles will not do, or an empty string."""
    if row["memory"] > row["memory_limit"]:
        return (
            f"it needs {row['memory'] / 1e9:.1f} GB of a chip's "
            f"{row['memory_limit'] / 1e9:.0f} GB."
        )
    # A float32 number of every gradient, at least.
    gradients = 4 * row["trained_parameters"]
    summed = row["mode"] == "train" and Topology(row["topology"]).chips > 1
    if summed and row["all_reduce_bytes"] < gradients:
        return (
            f"the chips sum {row['all_reduce_bytes']} bytes, but there are "
            f"{gradients} of gradients."
        )
    return ""


def versions():
    """Versions of what makes programs and compiles them."""
    return {
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        **{name: _version(name) for name in COMPILER},
    }


def _version(package):
    # What is refused needs no compiler.
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    run(TpuCompileConfig, PRESETS, main)
