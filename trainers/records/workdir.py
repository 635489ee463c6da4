"""The working directory of a run: configuration, metrics and results."""

import contextlib
import dataclasses
import hashlib
import json
import pathlib

from trainers.engine.problem import DATA_DIGEST
from trainers.errors import ConfigError, OtherDataError, TrainingError
from trainers.options.option import options
from trainers.options.own_classes import (
    digest_source,
    find_class,
    name_of,
    split_name,
)
from trainers.records.files import read_bytes, replacing
from trainers.records.lock import lock_directory
from trainers.records.results import describe_results


class Workdir(contextlib.AbstractContextManager):
    """Reads and writes the files of one run, alone.

    As a context manager it creates the directory if it is missing, and holds
    its lock.

    Args:
        path: The directory.
        config: Configuration of the run, a `TrainerConfig`.
        trainer: str. Name of the run's experiment.
        data_digest: str. That of the run's `Problem`.
        extensible: bool. Whether a run of more steps begins as one of fewer.

    Attributes:
        digest: str, hexadecimal. Digest of the configuration, except of what
            does not change the result and of the number of steps.

    Raises:
        ConfigError: On entering, if the directory cannot be written, is in
            use, or holds another run.
    """

    def __init__(
        self, path, config, trainer, *, data_digest="", extensible=True
    ):
        self.path = pathlib.Path(path)
        self.config = dataclasses.asdict(config)
        self._trainer = trainer
        self._data_digest = data_digest
        self._extensible = extensible
        self._defaults = {
            field.name: field.default for field in dataclasses.fields(config)
        }
        self._fixed = find_fixed(config, self.config)
        self._sources = find_sources(config)
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with self._stack:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                self._stack.enter_context(lock_directory(self.path))
                self._begin_or_resume()
            except TrainingError as error:
                raise ConfigError(str(error)) from None
            except OSError as error:
                raise ConfigError(
                    f"cannot write to --workdir={self.path}: {error.strerror}."
                ) from None
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def _begin_or_resume(self):
        record = read_config(self.path)
        if record is None:
            self._check_new()
            began_with = self.config
        else:
            began_with = record["config"]
            self._check_same(record)
        # Without the flags that are newer than the run.
        fixed = {n: began_with[n] for n in self._fixed if n in began_with}
        self.digest = make_digest(self._trainer, fixed, self._sources)
        if record is not None:
            check_digest(self.path, record, self.digest)
        stored = {
            name: value
            for name, value in self.config.items()
            if name in fixed or name not in self._fixed
        }
        self.write_json(
            "config.json",
            {
                "trainer": self._trainer,
                "digest": self.digest,
                "data_digest": self._data_digest,
                "sources": self._sources,
                "config": stored,
            },
        )

    def _check_new(self):
        """Raises `ConfigError` if files of a run are there already."""
        found = [
            self.path / name
            for name in ("results.json", "metrics.csv")
            if (self.path / name).exists()
        ]
        found += (self.path / "checkpoints").glob("*.npz")
        if found:
            raise ConfigError(
                f"{found[0]} belongs to a run, but there is no config.json of "
                "this run: restore it, or choose another --workdir."
            )

    def _check_same(self, record):
        previous = {**self._defaults, **record["config"]}
        changed = [
            f"--{name} was {previous[name]!r}, is {self.config[name]!r}"
            for name in self._fixed
            if previous[name] != self.config[name]
        ]
        changed += [
            f"--{name} was {value!r}, is no flag of this version"
            for name, value in record["config"].items()
            if name not in self.config
        ]
        if record["trainer"] != self._trainer:
            changed = [
                f"the trainer was {record['trainer']}, is {self._trainer}"
            ]
        before, steps = previous["steps"], self.config["steps"]
        if type(before) is not int:
            raise ConfigError(_describe_damage(self.path / "config.json"))
        if steps < before:
            changed.append(
                f"--steps was {before}, is {steps}: it can only be raised"
            )
        if steps > before and not self._extensible:
            changed.append(
                f"--steps was {before}, is {steps}: the schedule of the "
                "learning rate depends on it"
            )
        if changed:
            raise ConfigError(
                f"{self.path} holds a run with another configuration "
                f"({'; '.join(changed)}): choose another --workdir."
            )
        check_sources(self.path, record, self._sources)
        check_data(
            self.path,
            record.get("data_digest", ""),
            self._data_digest,
            f"{self.path} contains a run on other data: restore them, or "
            "choose another --workdir.",
        )

    @property
    def results(self):
        """Dict, the results of a finished run, or `None`."""
        results = read_results(self.path / "results.json")
        if results is None:
            return None
        if results.get("digest") != self.digest:
            raise ConfigError(
                f"{self.path / 'results.json'} is of a run with another "
                "configuration: move it away, or choose another --workdir."
            )
        finished = results.get("train", {}).get("steps") == self.config["steps"]
        return results if finished else None

    def read_positions(self, step):
        """Returns the metrics at positions of a step's evaluation, if any."""
        found = _read_json(self.path / "positions.json", {"step": int}) or {}
        return found if found.pop("step", None) == step else {}

    def write_json(self, name, content):
        """Writes a JSON file of the run, as a whole or not at all."""
        write_json(self.path / name, content)

    def make_results(self, metrics, problem, strategy, *, seconds):
        """Returns the content of `results.json`.

        Args:
            metrics: The run's `Metrics`.
            problem: The run's `Problem`.
            strategy: The `Strategy` of the process that finishes the run.
            seconds: float. Seconds spent training.
        """
        evaluations = metrics.evaluations()
        steps = self.config["steps"]
        return {
            **describe_results(
                self._trainer, self.digest, self.config, problem, strategy
            ),
            "train": {
                "steps": steps,
                "seconds": seconds,
                "steps_per_second": steps / max(seconds, 1e-9),
            },
            "final": evaluations[max(evaluations)],
            "best": metrics.best(list(evaluations.values())),
        }


def find_fixed(config, values):
    """Returns the values of the flags that the digest of a run is made of.

    Args:
        config: Configuration of the run.
        values: Dict from names of flags to values, some or all of them.
    """
    # Steps have a rule of their own.
    return {
        name: values[name]
        for name, known in options(config).items()
        if known.changes_result and name != "steps" and name in values
    }


def check_digest(path, record, digest):
    """Raises `ConfigError` if a configuration was changed by hand.

    Args:
        path: `pathlib.Path` of the working directory.
        record: Dict, the content of its `config.json`.
        digest: str. Digest of the configuration there.
    """
    if record["digest"] != digest:
        raise ConfigError(
            f"{path / 'config.json'} was changed after the run began: restore "
            "it, or begin another run."
        )


def check_data(path, known, found, refusal):
    """Raises `OtherDataError` if a run began with other data.

    Args:
        path: `pathlib.Path` of its working directory.
        known: str. Digest of the data that it began with.
        found: str. Digest of the data that are there.
        refusal: str. The message.
    """
    if known == found:
        return
    if known.startswith(DATA_DIGEST):
        raise OtherDataError(refusal)
    print(
        f"note: an earlier version began {path} and kept no checksum of all "
        "its data: if they have changed since then, nothing tells.",
        flush=True,
    )


def find_sources(config):
    """Finds the source of the classes of one's own that flags name.

    Args:
        config: Configuration of the run.

    Returns:
        Dict from names, as `my_project.layers:LogBias`, to digests.
    """
    found = {}
    for flag, known in options(config).items():
        value = getattr(config, flag)
        if known.names_own(value):
            module, _ = split_name(value)
            cls = find_class(f"--{flag}", module, name_of(value), known.base)
            found[f"{module}:{cls.__name__}"] = digest_source(cls)
    return found


def check_sources(path, record, sources):
    """Raises `ConfigError` if the source of a class is not that of a run.

    Args:
        path: `pathlib.Path` of its working directory.
        record: Dict, the content of its `config.json`.
        sources: Dict, the result of `find_sources` now.
    """
    began = record.get("sources", {})
    changed = [name for name in sources if began.get(name) != sources[name]]
    if changed:
        raise ConfigError(
            f"{path} began with another source of {' and '.join(changed)}: "
            "restore it, or begin another run."
        )


def make_digest(trainer, fixed, sources):
    """Returns the digest of a configuration, 16 hexadecimal digits.

    Args:
        trainer: str. Name of the experiment.
        fixed: Dict from names to values, those that change the result.
        sources: Dict, the result of `find_sources`.
    """
    content = json.dumps([trainer, {**fixed, **sources}], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def write_json(path, content):
    """Writes a JSON file, as a whole or not at all."""
    with replacing(path) as file:
        file.write(f"{json.dumps(content, indent=2)}\n".encode())


def read_config(path):
    """Reads the `config.json` of a working directory.

    Args:
        path: `pathlib.Path` of the directory.

    Returns:
        Dict with `trainer`, `digest` and `config`; `None` if there is none.

    Raises:
        ConfigError: If it is something else.
    """
    types = {"trainer": str, "digest": str, "config": dict}
    return _read_json(path / "config.json", types)


def read_results(path):
    """Reads results, a JSON file; returns and raises as `read_config`."""
    types = {"trainer": str, "config": dict, "final": dict}
    return _read_json(path, types)


def _read_json(path, types):
    content = read_bytes(path)
    if content is None:
        return None
    try:
        record = json.loads(content)
        if not all(isinstance(record[n], kind) for n, kind in types.items()):
            raise TypeError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ConfigError(_describe_damage(path)) from None
    return record


@contextlib.contextmanager
def naming_damage(file):
    """Turns what reading a damaged file raises into one message."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = "cannot be read"
        if isinstance(error, KeyError):
            reason = f"has no {error.args[0]}"
        raise ConfigError(
            f"{file} {reason}: it is damaged or of another version. Restore "
            "it, or move its directory away."
        ) from None


def _describe_damage(path):
    return (
        f"{path} is damaged or of another version: restore it, or choose "
        "another directory."
    )
