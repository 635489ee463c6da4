"""The fault that damages a checkpoint."""

from benchmarks.faults.run_files import find_checkpoints


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
