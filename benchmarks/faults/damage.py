"""Faults that damage a file, as a loss of power may."""

from benchmarks.faults.run_files import find_checkpoints, read_metrics

MOST_NULS = 5000
"""Maximum number of NUL bytes at the end of a file, more than a page."""


def damage_checkpoint(run, process):
    """Kills a run and damages its newest checkpoint.

    Returns:
        How the checkpoint was damaged; `None` if there is none to damage, or
        if the run has finished.
    """
    process.end()
    found = find_checkpoints(run.path)
    if not found or (run.path / "results.json").exists():
        return None
    file = found[max(found)]
    content = bytearray(file.read_bytes())
    place = run.rng.randrange(len(content))
    if run.rng.random() < 0.5:
        del content[place:]
        how = "cut short"
    else:
        content[place] ^= run.rng.randrange(1, 256)
        how = "a byte changed"
    file.write_bytes(content)
    run.damaged[file] = bytes(content)
    return how


def append_nul_bytes(run, process):
    """Kills a run and lets its metrics end with NUL bytes.

    Cuts the last line, too, if it is not older than the newest checkpoint: the
    lines before a checkpoint are on disk before the checkpoint is.

    Returns:
        How the file was damaged; `None` if there is none to damage, or if the
        run has finished.
    """
    process.end()
    file = run.path / "metrics.csv"
    if not file.exists() or (run.path / "results.json").exists():
        return None
    content, how = file.read_bytes(), "NUL bytes appended"
    rows = read_metrics(run.path)
    if rows and run.rng.random() < 0.5:
        step, _, length, _ = rows[-1]
        # A run repeats an evaluation of the step that it resumes from.
        if length or int(step) > max(find_checkpoints(run.path), default=0):
            start = content.rstrip(b"\n").rindex(b"\n") + 1
            content = content[: run.rng.randrange(start, len(content))]
            how = "the last line cut, NUL bytes appended"
    file.write_bytes(content + bytes(run.rng.randint(1, MOST_NULS)))
    return how
