"""Trains many models, each with its own command, several at a time."""

import concurrent.futures
import functools
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

import numpy as np

from trainers.engine.problem import average_unseen
from trainers.options.lengths import parse_lengths
from trainers.records.workdir import read_results

LENGTHS = ("20", "25", "40", "60", "100")
"""Test lengths in a table."""


def train(workdir, arguments):
    """Runs a trainer's command; resumes it, unless it has finished.

    Args:
        workdir: `pathlib.Path` of the working directory.
        arguments: List of str: the module, and its arguments.

    Returns:
        Dict, the content of `results.json`.

    Raises:
        SystemExit: If the command fails.
    """
    run_command([*arguments, f"--workdir={workdir}"])
    return read_results(workdir / "results.json")


def run_command(arguments):
    """Runs a module, with arguments, a list of str.

    Raises:
        SystemExit: If the command fails.
    """
    command = [sys.executable, "-m", *arguments]
    status = subprocess.run(command).returncode
    if status:
        raise SystemExit(f"exit status {status} of {shlex.join(command)}")


def write_command(arguments):
    """Returns the command of a module and its arguments, a str."""
    return shlex.join(["python", "-m", *arguments])


def describe(workdir, arguments, results):
    """Returns what every row of a report has, a dict."""
    return {
        "run": workdir.name,
        "command": write_command(arguments),
        "training_seconds": results["train"]["seconds"],
        "devices": results["computed_by"]["devices"],
    }


def run_all(rows, *, root, jobs):
    """Runs the trainer for every row and summarizes the results.

    Skips a row that has finished, and resumes one that was interrupted.

    Args:
        rows: Dicts of flags of `trainers.algorithmic`; `task`, `encoding` and
            `seed` must identify a row.
        root: Directory for the working directories.
        jobs: Number of commands to run at a time; they share the cores.

    Returns:
        A dict for each row: `task`, `encoding`, `seed`, `command`,
        `accuracy_by_length`, `training_seconds`, and the means over the unseen
        lengths `score`, `floor` and `position_only`.

    Raises:
        SystemExit: If a command fails, after all others have run.
    """
    start, results = time.monotonic(), {}
    calls = [functools.partial(_run, row, root, jobs) for row in rows]
    for place, result in run_at_once(calls, jobs=jobs):
        results[place] = result
        print(
            f"{len(results)}/{len(rows)} {result['task']}, "
            f"{result['encoding']}, seed {result['seed']}: score "
            f"{result['score']:.3f}, floor {result['floor']:.3f}, trained "
            f"{result['training_seconds']:.0f} s; "
            f"{(time.monotonic() - start) / 60:.0f} min in all",
            flush=True,
        )
    return [results[place] for place in range(len(rows))]


def run_at_once(calls, *, jobs):
    """Makes calls that run commands, several at a time.

    Args:
        calls: List of functions without arguments. One whose command fails
            raises a `RuntimeError`, which is shown; the others go on.
        jobs: Number of calls at a time.

    Yields:
        Place of a call in the list and its result, as they end.

    Raises:
        SystemExit: If a command failed, after all others have ended.
    """
    failures = 0
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    try:
        places = {pool.submit(call): n for n, call in enumerate(calls)}
        for future in concurrent.futures.as_completed(places):
            try:
                result = future.result()
            except RuntimeError as error:
                failures += 1
                print(error, flush=True)
                continue
            yield places[future], result
    finally:
        # An interruption ends the calls that have not begun, too.
        pool.shutdown(cancel_futures=True)
    if failures:
        raise SystemExit(f"{failures} of {len(calls)} commands failed.")


def find_workdir(row, root):
    """Finds the working directory of the command of a row."""
    name = "-".join(str(row[key]) for key in ("task", "encoding", "seed"))
    return pathlib.Path(root) / name


def _read_finished(row, workdir):
    """Reads the results of a row if it has finished with the same flags."""
    path = workdir / "results.json"
    if not path.exists():
        return None
    results = json.loads(path.read_text())
    same = all(results["config"][name] == row[name] for name in row)
    return results if same else None


def _run(row, root, jobs):
    flags = [f"--{name}={value}" for name, value in row.items()]
    workdir = find_workdir(row, root)
    if not _read_finished(row, workdir):
        train_alone(workdir, ["trainers.algorithmic", *flags], jobs=jobs)
    return _summarize(row, flags, _read_finished(row, workdir))


def train_alone(workdir, arguments, *, jobs):
    """Runs a trainer's command with its share of the cores, and a log.

    Args:
        workdir: `pathlib.Path` of the working directory; the log is beside it.
        arguments: List of str: the module, and its arguments.
        jobs: Number of commands that share the cores.

    Raises:
        RuntimeError: If the command fails.
    """
    workdir.parent.mkdir(parents=True, exist_ok=True)
    log = workdir.with_name(f"{workdir.name}.log")
    threads = max(1, os.cpu_count() // jobs)
    with log.open("a") as output:
        status = subprocess.run(
            [sys.executable, "-m", *arguments, f"--workdir={workdir}"],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TF_NUM_INTRAOP_THREADS": str(threads)},
        ).returncode
    if status:
        raise RuntimeError(f"{workdir}: exit status {status}, see {log}")


def _summarize(row, flags, results):
    final = results["final"]
    mean = functools.partial(
        average_unseen,
        longest_trained=max(
            parse_lengths("--train_length", row["train_length"])
        ),
    )
    quoted = [f'"{flag}"' if "(" in flag else flag for flag in flags]
    return {
        "task": row["task"],
        "encoding": row["encoding"],
        "seed": row["seed"],
        "command": " ".join(["python -m trainers.algorithmic", *quoted]),
        "score": mean(final["accuracy_by_length"]),
        "floor": mean(results["floor_by_length"]),
        "position_only": mean(results["position_only_by_length"]),
        "accuracy_by_length": final["accuracy_by_length"],
        "training_seconds": results["train"]["seconds"],
    }


def format_table(title, rows):
    """Formats the report in Markdown, a line for each task and encoding."""
    lines = [
        f"# {title}",
        "",
        "Trained on lengths 1 to 20. The score is the mean accuracy over the",
        "tested lengths 25 to 100; `floor` is that of the best simple rule",
        "on tokens without positions, `positions only` that of the best one",
        "on positions without tokens. A score that does not beat both shows",
        "nothing.",
        "",
        "| task | encoding | runs | best | mean | deviation | floor "
        "| positions only | " + " | ".join(f"at {n}" for n in LENGTHS) + " |",
        "| " + " | ".join(["---"] * (8 + len(LENGTHS))) + " |",
    ]
    groups = {}
    for row in rows:
        groups.setdefault((row["task"], row["encoding"]), []).append(row)
    for (task, encoding), runs in groups.items():
        scores = [run["score"] for run in runs]
        figures = [
            max(scores),
            np.mean(scores),
            np.std(scores),
            runs[0]["floor"],
            runs[0]["position_only"],
        ]
        figures += [
            np.mean([run["accuracy_by_length"][length] for run in runs])
            for length in LENGTHS
        ]
        cells = " | ".join(f"{figure:.3f}" for figure in figures)
        lines.append(f"| {task} | `{encoding}` | {len(runs)} | {cells} |")
    lines += ["", "Every run, and the seconds that it trained:", ""]
    lines += [
        f"- {row['score']:.3f} ({row['training_seconds']:.0f} s): "
        f"`{row['command']}`"
        for row in rows
    ]
    return "\n".join(lines) + "\n"
