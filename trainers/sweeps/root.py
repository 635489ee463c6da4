"""The root directory of a sweep: states, records and costs of its runs.

`trainers.sweeps.work` describes its files.
"""

import collections
import contextlib
import dataclasses
import functools
import json
import pathlib
import statistics

from datasets.files import only_files
from trainers.errors import ConfigError
from trainers.options.fields import resolve
from trainers.options.layers import with_max_position
from trainers.options.option import format_flag
from trainers.records.claims import (
    claim,
    is_locked,
    is_orphan,
    now,
    read_claim,
)
from trainers.records.files import writing
from trainers.records.opened_run import registered
from trainers.records.workdir import (
    find_fixed,
    find_sources,
    make_digest,
    read_config,
    read_results,
)
from trainers.sweeps.work import Job, has_failed, read_record, write_record

VARIED = ("seed", "learning_rate")
"""Flags that are checked only once: many runs differ in nothing else."""


class SweepRoot:
    """Reads and records the states of the runs of a sweep.

    Args:
        path: `pathlib.Path` of the root directory.
        arguments: Dict from names of flags to values that every command gets
            and no result depends on.
        directory: str. Directory that the commands run in.
        environment: Dict of environment variables for them.
    """

    def __init__(self, path, *, arguments, directory, environment):
        self.path = path.absolute()
        self._arguments = arguments
        self._directory = directory
        self._environment = environment

    def find_workdir(self, run):
        """Returns the `pathlib.Path` of the working directory of a `Run`."""
        return self.path / "runs" / run.name

    def make_config(self, run):
        """Makes the configuration of a run.

        Raises:
            ConfigError: If its flags are wrong.
        """
        flags = {**run.flags, **self._arguments}
        varied = {name: flags.pop(name) for name in VARIED if name in flags}
        try:
            config = _resolve(run.trainer, json.dumps(flags))
        except ConfigError as error:
            raise ConfigError(f"{run.name}: {error}") from None
        return dataclasses.replace(config, **varied)

    def make_job(self, run):
        """Makes the `Job` of a run."""
        flags = {**run.flags, **self._arguments, **self._find_source(run)}
        module = f"trainers.{run.trainer}"
        return Job(
            name=run.name,
            root=str(self.path),
            arguments=(
                module,
                *(format_flag(*each) for each in flags.items()),
            ),
            directory=self._directory,
            environment=self._environment,
            after=self.make_job(run.after) if run.after else None,
        )

    def _find_source(self, run):
        if run.after is None:
            return {}
        # The root may have been moved since the run began.
        with _root_in_place_of_workdir():
            record = read_config(self.find_workdir(run)) or {"config": {}}
        began = record["config"].get("initialize_from")
        return {"initialize_from": began or str(self.find_workdir(run.after))}

    def is_finished(self, run):
        """Returns whether a run has results of the same configuration."""
        workdir = self.find_workdir(run)
        with _root_in_place_of_workdir():
            results = read_results(workdir / "results.json")
            record = results and read_config(workdir)
        if record is None:
            return False
        config = dataclasses.replace(
            self.make_config(run), **self._find_source(run)
        )
        # Without the flags that are newer than the run.
        values = {
            name: value
            for name, value in dataclasses.asdict(config).items()
            if name in record["config"]
        }
        digest = make_digest(
            run.trainer, find_fixed(config, values), find_sources(config)
        )
        return (
            results.get("digest") == digest
            and results.get("train", {}).get("steps") == config.steps
        )

    def find_state(self, run):
        """Returns `"finished"`, `"failed"`, `"running"` or `"missing"`."""
        if self.is_finished(run):
            return "finished"
        if self.is_running(run):
            return "running"
        failed = has_failed(self.read_record(run))
        return "failed" if failed else "missing"

    def is_running(self, run):
        """Returns whether a process of any sweep trains a run."""
        with self._looking():
            return is_locked(self.path / "running" / run.name)

    def list_running(self):
        """Returns the names of the runs that some process trains."""
        with self._looking():
            return {
                path.name for path in self._list_claims() if is_locked(path)
            }

    def remove_claim(self, run):
        """Removes the claim of a command whose sweep was killed."""
        path = self.path / "running" / run.name
        if path.exists():
            with self._looking(), claim(path):
                pass

    def list_orphans(self):
        """Returns the claims of runs of this machine whose sweep was killed.

        Returns:
            Dict from their `pathlib.Path` to what they say.
        """
        with self._looking():
            claims = {path: read_claim(path) for path in self._list_claims()}
        return {
            p: about for p, about in claims.items() if is_orphan(about or {})
        }

    def _list_claims(self):
        try:
            with self._looking():
                return sorted((self.path / "running").iterdir())
        except FileNotFoundError:
            return []

    @contextlib.contextmanager
    def _looking(self):
        """Turns a failure to see who trains a run into `ConfigError`."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise ConfigError(
                f"cannot tell which runs of {self.path} are running: {error}. "
                "A sweep needs a directory that it may write to, on a file "
                "system with locks: fix this, or choose another --root."
            ) from None

    def read_record(self, run):
        """Returns the record of how the last process of a run ended."""
        try:
            return read_record(self.path, run.name)
        except OSError as error:
            raise ConfigError(
                f"cannot read the record of {run.name}: {error}. Fix this, or "
                "choose another --root."
            ) from None

    def write_failure(self, run, lines):
        """Records that a run failed for a reason that its log has not."""
        with writing(self.path, "the failure is not recorded"):
            record = self.read_record(run)
            failure = {"status": 1, "ended": now(), "lines": lines}
            write_record(self.path, run.name, {**record, **failure})

    def forget_failure(self, run):
        """Lets a failed run count as one that was never started."""
        with writing(self.path, "the run is not retried"):
            record = self.read_record(run)
            record |= {"status": -1, "lost": 0}
            write_record(self.path, run.name, record)

    def forget_losses(self, run):
        """Lets a run be lost as often as one that was never started."""
        record = self.read_record(run)
        if record.get("lost") and not has_failed(record):
            with writing(self.path, "its losses are not forgotten"):
                write_record(self.path, run.name, {**record, "lost": 0})

    def find_progress(self, run):
        """Returns the step that a run has logged last, and its seconds."""
        logged = _read_logged(self.find_workdir(run) / "metrics.csv")
        return logged[-1] if logged else (0, 0.0)

    def is_measured(self, run):
        """Returns whether the time of the steps of a run is known."""
        return self._find_cost(run) is not None

    def estimate(self, runs):
        """Estimates what runs cost from those that have begun.

        A run costs as much as the mean of the finished runs of its row;
        where there are none, of those that have begun; where there are none,
        of its trainer.

        Args:
            runs: Iterable of `Run`: all of the sweep.

        Returns:
            A function of runs; returns the seconds that they still need, and
            the number of runs whose trainer has not run yet.
        """
        finished, begun = (collections.defaultdict(list) for _ in range(2))
        for run in runs:
            self._add_cost(run, finished, begun)

        def find_seconds(left):
            total, unknown = 0.0, 0
            for run in left:
                keys = ((run.trainer, run.row), run.trainer)
                known = next(
                    (
                        costs[key]
                        for key in keys
                        for costs in (finished, begun)
                        if key in costs
                    ),
                    None,
                )
                if known is None:
                    unknown += 1
                    continue
                start, rate = map(statistics.fmean, zip(*known, strict=True))
                steps = self.make_config(run).steps
                done = min(self.find_progress(run)[0], steps)
                total += start + (steps - done) * rate
            return total, unknown

        return find_seconds

    def _add_cost(self, run, finished, begun):
        """Adds the cost of a run to one of two dicts, if it is known."""
        cost = self._find_cost(run)
        if cost is not None:
            has_ended = self.read_record(run).get("status") == 0
            costs = finished if has_ended else begun
            costs[run.trainer, run.row].append(cost)
            costs[run.trainer].append(cost)

    def _find_cost(self, run):
        """Returns the seconds of a run beside its steps, and of a step.

        The first ones are those of the start of its command, of compilation
        and, if it has finished, of the last evaluation.
        """
        record = self.read_record(run)
        # Without the processes that no sweep has survived.
        seconds = record.get("seconds", 0.0)
        logged = _read_logged(self.find_workdir(run) / "metrics.csv")
        has_ended = record.get("status") == 0 and "seconds" in record
        steps = self.make_config(run).steps
        if len(logged) == 2:
            # The steps before the first report are slow.
            (first, begin), (last, end) = logged
            rate = (end - begin) / (last - first)
            seconds = max(seconds, end)
            steps = steps if has_ended else last
        elif has_ended:
            rate = seconds / steps
        else:
            return None
        return max(0.0, seconds - steps * rate), rate


@contextlib.contextmanager
def _root_in_place_of_workdir():
    """Lets an error about a run name the flag of the sweep."""
    try:
        yield
    except ConfigError as error:
        text = str(error).replace("another directory", "another --root")
        raise ConfigError(text) from None


@functools.lru_cache(maxsize=4096)
def _resolve(trainer, flags):
    experiment = registered()[trainer]
    config = resolve(experiment.config, experiment.presets, json.loads(flags))
    return with_max_position(config.resolved)


def _read_logged(path):
    """Returns the first and the last step that are logged, with seconds.

    Returns:
        List of pairs; of one or none if there are not two steps.
    """
    try:
        with open(path, "rb", opener=only_files) as file:
            first = file.read(1000)
            file.seek(max(0, path.stat().st_size - 1000))
            last = file.read()
        # The first line has the names of the columns.
        lines = first.split(b"\n")[1], last.splitlines()[-1]
        pairs = [line.split(b",")[:2] for line in lines]
        found = [(int(step), float(seconds)) for step, seconds in pairs]
    except (OSError, ValueError, IndexError):
        return []
    return found if found[0][0] < found[1][0] else found[1:]


def find_root(text, grid):
    """Returns the path of the root directory of a `Grid`.

    Args:
        text: str. The value of `--root`; empty: the default.
        grid: The `Grid`.
    """
    return pathlib.Path(text or f"runs/sweeps/{grid.name_of_size}")
