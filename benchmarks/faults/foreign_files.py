"""The fault that puts files of other runs in place of a run's own."""

from benchmarks.faults.run import Failure
from benchmarks.faults.run_files import find_checkpoints
from benchmarks.faults.training_process import find_errors


def place_foreign_file(run, process):
    """Kills a run, replaces a file, starts the run and restores the file.

    Returns:
        Which file was replaced; `None` if there is none to replace, or if the
        run has finished.
    """
    process.end()
    config_file = run.path / "config.json"
    if not config_file.exists() or (run.path / "results.json").exists():
        return None
    flag = run.rng.choice(sorted(run.reference.foreign))
    other = run.reference.foreign[flag]
    before = _read_files(run.path)
    way = run.rng.choice((_checkpoint, _config, _results, _no_config))
    how, message = way(run, other, flag)
    if how is None:
        return None
    if way is not _no_config:
        how = f"{how} of another {flag} refused"
    _check_refusal(run, message)
    for file in _read_files(run.path).keys() - before.keys():
        file.unlink()
    for file, content in before.items():
        file.write_bytes(content)
    return how


def _checkpoint(run, other, flag):
    newest = max(find_checkpoints(run.path), default=0)
    step = run.rng.choice([newest, newest + 4] if newest else [4])
    file = run.path / "checkpoints" / f"checkpoint-{step}.npz"
    file.parent.mkdir(exist_ok=True)
    foreign = run.rng.choice(list(find_checkpoints(other).values()))
    file.write_bytes(foreign.read_bytes())
    return "checkpoint", f"{file} is of a run with another configuration"


def _config(run, other, flag):
    _copy("config.json", other, run.path)
    return "config.json", f"{run.path} holds a run with another configuration"


def _results(run, other, flag):
    _copy("results.json", other, run.path)
    file = run.path / "results.json"
    return file.name, f"{file} is of a run with another configuration"


def _no_config(run, other, flag):
    if not (find_checkpoints(run.path) or (run.path / "metrics.csv").exists()):
        # Nothing is left of the run, which begins again.
        return None, None
    (run.path / "config.json").unlink()
    return "no config.json refused", "but there is no config.json"


def _copy(name, source, target):
    (target / name).write_bytes((source / name).read_bytes())


def _check_refusal(run, message):
    """Raises `Failure` unless a start says this and changes nothing."""
    before = _read_files(run.path)
    process = run.start()
    try:
        status = process.wait()
    finally:
        process.end()
    errors = find_errors(process.output)
    if status != 2 or len(errors) != 1 or message not in errors[0]:
        raise Failure(f"exit status {status} with a foreign file: {errors}")
    if _read_files(run.path) != before:
        raise Failure(f"a start changed files and then said: {errors[0]}")


def _read_files(path):
    """Reads the files that a run resumes from."""
    files = [
        *path.glob("*.json"),
        *path.glob("*.csv"),
        *path.glob("checkpoints/*.npz"),
    ]
    return {file: file.read_bytes() for file in files}
