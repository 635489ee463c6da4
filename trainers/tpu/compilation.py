"""Compiles programs, several at a time, in processes of their backend."""

import concurrent.futures
import contextlib
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

from trainers.errors import ConfigError, DataError, TrainingError
from trainers.tpu import table as tpu_table
from trainers.tpu.compiler import (
    COMPILER,
    Topology,
    compile_program,
    estimate_step_seconds,
)
from trainers.tpu.programs import MODES, find_lengths


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
    began, done = time.monotonic(), 0
    for some in _divide(missing, jobs):
        for row in _compile_some(some, jobs):
            results.add(row)
            done += 1
            left = (time.monotonic() - began) / done * (len(missing) - done)
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
    began = time.monotonic()
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
        "lower_seconds": round(time.monotonic() - began, 1),
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
