"""Disturbs toy runs at random moments: do they end as undisturbed ones?

The kinds of faults:

- `sigkill`, `sigterm`, `sigint`: the signal;
- `truncate`: a kill, and the newest checkpoint is damaged;
- `nul_tail`: a kill, and the metrics end with NUL bytes;
- `foreign_files`: a kill, and a file of another run in place of the run's own,
  which the next start must refuse;
- `disk`: a full file system;
- `second_start`: the same command while the run goes on, which must be refused;
- `file_operation`: kills, or losses of power, at operations on files;
- `worker`: a kill of one of two workers;
- `between`: SIGTERM or SIGINT while a command that trains two models changes
  from the first to the second.

Half of the faults in runs of one process wait until a checkpoint is written.
After each fault the same command resumes the run. In the end weights, losses,
evaluations and results must equal those of an undisturbed run bit by bit; every
checkpoint on the way must equal the undisturbed one of the same step.

    python -m benchmarks.fault_drill --output=drill.json
    python -m benchmarks.fault_drill --output=disk.json --kinds=disk --faults=9

The report is written after every run. If a drill is stopped, or reaches
`--minutes`, the same command goes on where the report ends. A report of other
flags, of other code or of other versions is refused.

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

from benchmarks.faults.demonstration import (
    Demonstration,
    disturb_demonstration,
    make_demonstration_reference,
)
from benchmarks.faults.disturb import FAULTS, disturb, disturb_workers
from benchmarks.faults.file_operations import (
    OperationsCommand,
    disturb_operations,
)
from benchmarks.faults.full_disk import mount, unmount
from benchmarks.faults.reference import make_reference, make_workers_reference
from benchmarks.faults.report import Report
from benchmarks.faults.run import Failure, Run
from benchmarks.faults.tally import Tally

KINDS = (*FAULTS, "file_operation", "worker", "between")

SUBJECTS = {
    "process": (make_reference, Run, disturb),
    # It makes its reference itself.
    "file_operation": (
        lambda root: None,
        OperationsCommand,
        disturb_operations,
    ),
    "worker": (make_workers_reference, Run, disturb_workers),
    "between": (
        make_demonstration_reference,
        Demonstration,
        disturb_demonstration,
    ),
}
"""What is disturbed: how to make its reference and a run, and the faults.

Every kind of fault without a subject of its name disturbs a process.
"""


def drill(tally, report, *, seed, most, minutes, root):
    """Disturbs runs until all planned faults have happened.

    Args:
        tally: The `Tally`.
        report: The `Report`, written after every run.
        seed: Seed of all moments.
        most: Maximum number of faults of a run.
        minutes: After these minutes no run is started.
        root: Directory for everything.
    """
    until = time.monotonic() + 60 * minutes
    directory = root
    if "disk" in tally.left:
        if reason := mount(root / "disk"):
            tally.skip("disk", reason)
            print(f"disk: not run, because nothing can be mounted: {reason}")
        else:
            directory = root / "disk"
    references = {}
    try:
        while (left := tally.left) and time.monotonic() < until:
            name = f"run-{tally.runs}"
            rng = random.Random(f"{seed} {name}")
            subject, kinds = choose_faults(left, most, rng)
            make, make_run, disturb_run = SUBJECTS[subject]
            if subject not in references:
                references[subject] = make(root / f"undisturbed-{subject}")
            logs = root / f"{name}-logs"
            run = make_run(directory / name, logs, references[subject], rng)
            problem = None
            try:
                disturb_run(run, kinds, tally)
                run.check_end()
            except Failure as error:
                problem = str(error)
            tally.add_run(run, problem)
            report.write(tally)
            shutil.rmtree(run.path, ignore_errors=True)
    finally:
        if directory != root:
            unmount(directory)


def choose_faults(left, most, rng):
    """Chooses the faults of the next run.

    Args:
        left: `{kind: number of faults still to come}`.
        most: Maximum number of faults.
        rng: `random.Random` of the run.

    Returns:
        The name of the subject, and a list of kinds. A subject is as probable
        as its faults are many.
    """
    kinds = [kind for kind, count in left.items() for _ in range(count)]
    rng.shuffle(kinds)
    subject = _find_subject(kinds[0])
    return subject, [k for k in kinds if _find_subject(k) == subject][:most]


def _find_subject(kind):
    return kind if kind in SUBJECTS else "process"


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
        "--minutes",
        type=float,
        default=float("inf"),
        help="After these minutes no run is started.",
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
    command = " ".join(
        ["python -m benchmarks.fault_drill"]
        + [
            f"--{name}={getattr(arguments, name)}"
            for name in ("faults", "kinds", "seed", "most")
        ]
    )
    report = Report(arguments.output, command)
    tally = Tally(planned, report.read())
    # As an exception, SIGTERM unmounts and removes everything, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="fault-drill-") as root:
        drill(
            tally,
            report,
            seed=arguments.seed,
            most=arguments.most,
            minutes=arguments.minutes,
            root=pathlib.Path(root),
        )
    for kind, found in tally.kinds.items():
        print(f"{kind}: {json.dumps(found)}")
    print(f"report: {arguments.output}")
    if left := sum(tally.left.values()):
        print(f"{left} faults left: run the same command again to go on")
    if tally.failures:
        sys.exit(f"{len(tally.failures)} runs failed, see {arguments.output}")


if __name__ == "__main__":
    main()
