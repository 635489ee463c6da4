"""Compiles a trainer's programs for a TPU, on a machine without a TPU.

    python -m trainers.tpu_compile --topology=v5e:2x2 --encoding=RandomizedRoPE
    KERAS_BACKEND=jax python -m trainers.tpu_compile --topology=v6e:2x2
    python -m trainers.tpu_compile --trainer=enwik8 --dataset=python_source

The programs are the training step and the evaluation of a batch, of TensorFlow
or of JAX. Reports for each program whether it compiles, whether it fits into a
chip's memory, how much it computes, reads and writes, and the least time of a
step. Results are appended to one file, with one line for each program. A
program with a result in the file is not compiled again.
"""

import concurrent.futures
import contextlib
import dataclasses
import importlib
import importlib.metadata
import itertools
import multiprocessing
import operator
import os
import re
import signal
import threading
import time

import keras
import tensorflow as tf

from datasets.tasks import TASKS
from datasets.text_tasks import TEXT_TASKS
from keras_lengen.layers import ATTENTIONS, TOKEN_SAMPLERS
from trainers.errors import ConfigError, DataError, TrainingError
from trainers.options.command import run
from trainers.options.fields import (
    check_choice,
    check_options,
    option,
    options,
    resolve,
)
from trainers.options.layers import (
    ALL_ENCODINGS,
    ALL_SAMPLERS,
    with_max_position,
)
from trainers.tpu import table as tpu_table
from trainers.tpu.compiler import (
    COMPILER,
    Topology,
    compile_program,
    estimate_step_seconds,
)
from trainers.tpu.programs import MODES, find_lengths, list_trainers


@dataclasses.dataclass(frozen=True)
class TpuCompileConfig:
    """Flags of this command.

    A flag of a trainer that is empty or 0 keeps the trainer's own default.
    """

    preset: str = option("small", "Preset of the trainer.")
    backend: str = option(
        keras.backend.backend(),
        "Backend of the programs; by default that of Keras.",
        choices=("tensorflow", "jax"),
    )
    topology: str = option(
        "v5e:2x2", "Slice to compile for, such as v6e:2x2 or v4:2x2x1."
    )
    trainer: str = option(
        "algorithmic", f"Trainer to compile: {', '.join(list_trainers())}."
    )
    mode: str = option(
        "all", "Kind of programs to compile.", choices=("all", *MODES)
    )
    lengths: str = option(
        "longest",
        "Padded lengths to compile.",
        choices=("longest", "all"),
    )
    task: str = option(
        "", "Task of a trainer that has some.", choices={**TASKS, **TEXT_TASKS}
    )
    dataset: str = option("", "Data of a trainer that reads some.")
    data_dir: str = option("", "Directory of these data.", is_path=True)
    encoding: str = option(
        "RandomizedRoPE", "Encoding: a name or a call.", registry=ALL_ENCODINGS
    )
    sampler: str = option(
        "",
        "Position sampler: a name or a call.",
        registry={**ALL_SAMPLERS, **TOKEN_SAMPLERS},
    )
    attention: str = option(
        "", "Name of the attention layer.", choices=ATTENTIONS
    )
    score_factor: str = option("", "Factor of the scores.")
    loops: str = option("", "How often the blocks are applied.")
    max_position: int = option(
        0,
        "Positions are below this number, for layers with this argument.",
        least=0,
    )
    chunk_size: int = option(
        0, "Number of queries whose scores are in memory at a time.", least=0
    )
    draw: str = option(
        "", "Draws of positions: one per model, or one per layer."
    )
    precision: str = option(
        "mixed_bfloat16", "Dtype policy: float32 or mixed_bfloat16."
    )
    batch_size: int = option(
        0, "Number of examples in a global batch.", least=0
    )
    gradient_accumulation_steps: int = option(
        0,
        "Number of parts in which a chip computes its share of the batch.",
        least=0,
    )
    train_length: str = option("", "Training lengths.")
    test_lengths: str = option("", "Further lengths for evaluation.")
    train_size: str = option("", "Of images, trained sizes.")
    test_sizes: str = option("", "Of images, further sizes for evaluation.")
    table: str = option(
        "false",
        f"true: bring {tpu_table.TABLE} up to date, with the programs of both "
        "backends.",
        choices=("true", "false"),
    )
    jobs: int = option(
        1,
        "Number of programs to compile at a time; large ones need 10 GB each.",
    )
    force: str = option(
        "false",
        "true: also compile programs with results in the file.",
        choices=("true", "false"),
    )
    results: str = option(
        "",
        f"File for the results; by default {tpu_table.OWN}, or with "
        f"--table=true {tpu_table.TABLE}.",
        is_path=True,
    )

    def validate(self):
        """Raises `ConfigError` for the first invalid value."""
        Topology(self.topology)
        check_choice("--trainer", self.trainer, tuple(list_trainers()))
        check_options(self)
        if self.results.endswith(".md"):
            raise ConfigError(
                f"--results={self.results} is the name of the report beside "
                "the results: choose a name such as tpu_compile.jsonl."
            )


PRESETS = {
    name: {} for known in list_trainers().values() for name in known.presets
}


@dataclasses.dataclass(frozen=True)
class Program:
    """A program to compile.

    Attributes:
        backend: `"tensorflow"` or `"jax"`.
        topology: str. Name of the slice.
        trainer: str. Name of the trainer.
        mode: `"train"` or `"evaluate"`.
        tokens: int. Padded length.
        config: Configuration of the trainer.
        experiment: `Experiment` of the trainer.
    """

    backend: str
    topology: str
    trainer: str
    mode: str
    tokens: int
    config: object
    experiment: object = dataclasses.field(compare=False)

    @property
    def key(self):
        """Dict of everything that determines the program, except versions."""
        values = dataclasses.asdict(self.config)
        return {
            "backend": self.backend,
            "topology": self.topology,
            "trainer": self.trainer,
            "mode": self.mode,
            "tokens": self.tokens,
            # It also sets options that are no flags of this command.
            "preset": self.config.preset,
            **{
                name: values[name]
                for name in (
                    *tpu_table.list_program_fields(),
                    *tpu_table.DATA,
                )
                if name in values
            },
        }


def main(config):
    """Compiles the programs of a configuration and writes their results.

    Args:
        config: `TpuCompileConfig`.

    Raises:
        ConfigError: If the library refuses the configuration.
        TrainingError: If a program does not compile or is too large.
    """
    Topology(config.topology).devices()
    table = config.table == "true"
    path = config.results or (tpu_table.TABLE if table else tpu_table.OWN)
    results = tpu_table.Results(path)
    print(f"results: {path}", flush=True)
    if table:
        wanted = [
            program
            for flags in tpu_table.list_flags()
            for program in programs(resolve(TpuCompileConfig, PRESETS, flags))
        ]
    else:
        wanted = programs(config)
    # The flags of the table overlap.
    wanted = list(dict.fromkeys(wanted))
    missing = [
        program
        for program in wanted
        if config.force == "true" or program.key not in results
    ]
    if len(missing) < len(wanted):
        print(
            f"{len(wanted) - len(missing)} of {len(wanted)} programs are in "
            f"{path} already; --force=true compiles them again."
        )
        for program in wanted if not table else ():
            if program not in missing:
                print(tpu_table.describe(results[program.key]))
    compile_all(missing, results, config.jobs)
    results.write_report()
    found = [results[program.key] for program in wanted]
    unusable = [row for row in found if row["status"] in tpu_table.UNUSABLE]
    if unusable:
        raise TrainingError(
            f"{len(unusable)} of {len(found)} programs cannot run, see {path}; "
            f"the first: {unusable[0]['reason']}"
        )
    refused = [row for row in found if row["status"] == "refused"]
    if refused and not table:
        raise ConfigError(refused[0]["reason"])


def programs(config):
    """Returns a list of the `Program`s that a configuration asks for.

    Args:
        config: `TpuCompileConfig`.

    Raises:
        ConfigError: If a flag is invalid or does not belong to the trainer.
    """
    trainer = list_trainers()[config.trainer]
    known = {
        field.name
        for some in list_trainers().values()
        for field in dataclasses.fields(some.config)
    }
    given = {
        name: value
        for name, value in dataclasses.asdict(config).items()
        if name in known and value
    }
    for name in given.keys() - options(trainer.config).keys():
        raise ConfigError(f"--{name} is not a flag of {config.trainer}.")
    given["strategy"] = "tpu"
    of_trainer = with_max_position(
        resolve(trainer.config, trainer.presets, given)
    )
    first = -1 if config.lengths == "longest" else 0
    return [
        Program(
            config.backend,
            config.topology,
            config.trainer,
            mode,
            tokens,
            of_trainer,
            trainer,
        )
        for mode in MODES
        if config.mode in ("all", mode)
        for tokens in find_lengths(trainer, of_trainer, mode)[first:]
    ]


def compile_all(missing, results, jobs):
    """Compiles programs, several at a time, and saves each result.

    Args:
        missing: List of `Program`.
        results: `Results` to which the rows are added.
        jobs: int. Number of programs to compile at the same time.

    Raises:
        DataError: If data that a program needs are missing.
        TrainingError: If a process that compiles is killed.
    """
    start, done = time.monotonic(), 0
    for some in _divide(missing, jobs):
        for row in _compile_some(some, jobs):
            results.add(row)
            done += 1
            left = (time.monotonic() - start) / done * (len(missing) - done)
            print(
                f"{done}/{len(missing)} {tpu_table.describe(row)}; "
                f"{left / 60:.0f} min left",
                flush=True,
            )


def _divide(missing, jobs):
    """Yields lists of programs of one backend, for the same processes."""
    # New processes from time to time, because TensorFlow never frees memory.
    size = 20 * jobs
    key = operator.attrgetter("backend")
    for _, group in itertools.groupby(sorted(missing, key=key), key):
        group = list(group)
        for first in range(0, len(group), size):
            yield group[first : first + size]


def _compile_some(some, jobs):
    """Yields the row of each program when it is compiled."""
    # New processes read these when they import Keras and JAX. JAX need not
    # look for a TPU to compute on.
    variables = {"KERAS_BACKEND": some[0].backend, "JAX_PLATFORMS": "cpu"}
    with (
        _environment(variables),
        concurrent.futures.ProcessPoolExecutor(
            jobs,
            # TensorFlow does not work in a forked process.
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_exit_with,
            initargs=(os.getpid(),),
        ) as pool,
    ):
        futures = [pool.submit(compile_one, program) for program in some]
        try:
            for future in concurrent.futures.as_completed(futures):
                yield future.result()
        except concurrent.futures.process.BrokenProcessPool:
            raise TrainingError(
                "a process that compiles was killed, perhaps because memory "
                "ran out. Run the same command again to resume; --jobs=1 needs "
                "less memory."
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _environment(variables):
    """Sets environment variables, and restores them at the end."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _exit_with(parent):
    """Starts a thread that ends this process when its parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def watch():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def compile_one(program):
    """Compiles a program and returns its row, a dict of its key and results.

    Keras must be set to the program's backend.

    Raises:
        DataError: If data that the program needs are missing.
    """
    experiment, topology = program.experiment, Topology(program.topology)
    row = {
        **program.key,
        "programs": {
            mode: len(find_lengths(experiment, program.config, mode))
            for mode in MODES
        },
        "versions": read_versions(),
    }
    start = time.monotonic()
    module = f"trainers.tpu.{program.backend}_programs"
    try:
        lowered, examples, trained = importlib.import_module(module).lower(
            experiment, program.config, program.mode, program.tokens, topology
        )
    except DataError:
        # The same program may have its data the next time.
        raise
    except ConfigError as error:
        return {**row, "status": "refused", "reason": str(error)}
    except Exception as error:
        return {**row, "status": "failed", "reason": _format_reason(error)}
    row |= {
        "examples_per_chip": examples,
        "trained_parameters": trained,
        "lower_seconds": round(time.monotonic() - start, 1),
    }
    try:
        found = compile_program(lowered, topology)
    except RuntimeError as error:
        # The compiler itself refuses programs that are far too large for the
        # memory of a chip, its HBM.
        large = re.search("RESOURCE_EXHAUSTED.* HBM", str(error))
        status = "too large" if large else "failed"
        return {**row, "status": status, "reason": _format_reason(error)}
    row |= {
        **found,
        "memory_limit": topology.chip.memory,
        "step_seconds": estimate_step_seconds(found, topology),
    }
    return row | judge(row)


def _format_reason(error):
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


def judge(row):
    """Returns a dict of the status of a compiled program, and the reason."""
    if row["memory"] > row["memory_limit"]:
        return {
            "status": "too large",
            "reason": f"it needs {row['memory'] / 1e9:.1f} GB, but a chip has "
            f"{row['memory_limit'] / 1e9:.0f} GB.",
        }
    # The sums of TensorFlow's step are its own. XLA makes those of JAX's step,
    # and may sum bfloat16 numbers, or only the rows of a table that are used.
    summed = row["backend"] == "tensorflow" and row["mode"] == "train"
    # At least one float32 number for each trained parameter.
    gradients = 4 * row["trained_parameters"]
    if (
        summed
        and Topology(row["topology"]).chips > 1
        and row["all_reduce_bytes"] < gradients
    ):
        return {
            "status": "failed",
            "reason": f"the chips sum {row['all_reduce_bytes']} bytes, but the "
            f"gradients have {gradients} bytes.",
        }
    return {"status": "compiled"}


def read_versions():
    """Returns the versions of the packages that make and compile programs."""
    return {
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        **{name: _read_version(name) for name in COMPILER},
    }


def _read_version(package):
    # A refused configuration gets a row even if no compiler is installed.
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    run(TpuCompileConfig, PRESETS, main)
