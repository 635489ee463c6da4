"""Disturbs toy runs at random moments: do they end as undisturbed ones?

Faults kill or stop a run, kill one of two workers, damage the newest
checkpoint or fill the file system. Half of the faults in runs of one process
wait until a checkpoint is written. After each fault the same command resumes
the run. In the end weights, losses, evaluations and results must equal those
of an undisturbed run bit by bit; every checkpoint on the way must equal the
undisturbed one of the same step.

    python -m benchmarks.fault_drill
    python -m benchmarks.fault_drill --faults=12 --kinds=sigterm,disk

`disk` mounts a small file system, which needs root; without root the report
says that `disk` was not run.
"""

import argparse
import json
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

from benchmarks.faults.disturb import KINDS, disturb, disturb_workers
from benchmarks.faults.full_disk import mount, unmount
from benchmarks.faults.reference import make_reference
from benchmarks.faults.run import DISTURBED_FLAGS, Failure, Run
from benchmarks.faults.tally import Tally
from benchmarks.measure import write_report


def drill(planned, seed, most, root):
    """Disturbs runs until all planned faults have happened.

    Args:
        planned: `{kind: number of faults}`.
        seed: Seed of all moments.
        most: Maximum number of faults of a run.
        root: Directory for everything.

    Returns:
        The `Tally`, and `{kind: why it was not run}`.
    """
    not_run = {}
    disk = root / "disk"
    if "disk" in planned and (reason := mount(disk)):
        planned = {kind: planned[kind] for kind in planned if kind != "disk"}
        not_run["disk"] = reason
        print(f"disk: not run, because nothing can be mounted: {reason}")
    tally = Tally(planned)
    directory = disk if "disk" in planned else root
    pending = {False: [], True: []}
    for kind, faults in planned.items():
        pending[kind == "worker"] += [kind] * faults
    try:
        for workers, kinds in pending.items():
            if not kinds:
                continue
            random.Random(seed).shuffle(kinds)
            reference = make_reference(root / f"undisturbed-{workers}", workers)
            while kinds:
                name = f"run-{tally.runs}"
                run = Run(
                    directory / name,
                    root / f"{name}-logs",
                    reference,
                    random.Random(f"{seed} {name}"),
                )
                own, kinds[-most:] = kinds[-most:], []
                problem = None
                try:
                    (disturb_workers if workers else disturb)(run, own, tally)
                    run.check_end()
                except Failure as error:
                    problem = str(error)
                tally.add_run(run, problem)
                # The next run gets the faults that this one has escaped.
                kinds += own
                shutil.rmtree(run.path, ignore_errors=True)
    finally:
        if "disk" in planned:
            unmount(disk)
    return tally, not_run


def parse_arguments():
    """Parses the flags; returns them and `{kind: number of faults}`."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], allow_abbrev=False
    )
    parser.add_argument(
        "--faults", type=int, default=200, help="Number of faults."
    )
    parser.add_argument(
        "--kinds", default=",".join(KINDS), help="Kinds of faults."
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="Seed of all moments."
    )
    parser.add_argument(
        "--most", type=int, default=4, help="Maximum number of faults of a run."
    )
    parser.add_argument(
        "--output",
        default="benchmarks/results/fault_drill.json",
        help="File for the report.",
    )
    arguments = parser.parse_args()
    kinds = arguments.kinds.split(",")
    for kind in kinds:
        if kind not in KINDS:
            parser.error(f"--kinds takes {', '.join(KINDS)}; got {kind}.")
    if min(arguments.faults, arguments.most) < 1:
        parser.error("--faults and --most must be at least 1.")
    share, more = divmod(arguments.faults, len(kinds))
    return arguments, {kind: share + (n < more) for n, kind in enumerate(kinds)}


def main():
    """Runs the drill, writes its report; exit status 1 if a run failed."""
    arguments, planned = parse_arguments()
    # As an exception, SIGTERM unmounts and removes everything, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="fault-drill-") as root:
        start = time.monotonic()
        tally, not_run = drill(
            planned, arguments.seed, arguments.most, pathlib.Path(root)
        )
    for kind, found in tally.kinds.items():
        print(f"{kind}: {json.dumps(found)}")
    write_report(
        arguments.output,
        "benchmarks.fault_drill",
        {
            "flags": DISTURBED_FLAGS,
            "faults": tally.faults,
            "runs": tally.runs,
            "kinds": tally.kinds,
            "not_run": not_run,
            "failures": tally.failures,
            "seconds": time.monotonic() - start,
        },
    )
    if tally.failures:
        sys.exit(f"{len(tally.failures)} runs failed, see {arguments.output}")


if __name__ == "__main__":
    main()
