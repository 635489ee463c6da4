"""Disturbs toy runs at random moments: do they end as undisturbed ones?

Runs are killed, stopped, robbed of one of two workers or of bytes of their
newest checkpoint, or find their file system full; where there is one process,
half of that as a checkpoint is being written. The same command goes on until
it ends, with the next fault on its way. In the end weights, losses,
evaluations and results must equal those of an undisturbed run bit by bit, and
on the way all checkpoints those that it had after their steps.

    python -m benchmarks.fault_drill
    python -m benchmarks.fault_drill --faults=12 --kinds=sigterm,disk

`disk` mounts a small file system: it needs root, and is reported as not run
without.
"""

import argparse
import collections
import contextlib
import csv
import dataclasses
import json
import os
import pathlib
import random
import re
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

import numpy as np

# Imported once: most runs are forks of this process.
import trainers.algorithmic  # noqa: F401
from benchmarks.measure import command_line, write_report
from trainers.records.progress import clock

STEPS = 200
EVALUATE_EVERY = 40
FLAGS = [
    "--task=reverse_string",
    "--encoding=RandomizedRelativeEncoding",
    "--num_layers=1",
    "--num_heads=2",
    "--model_dim=8",
    "--dropout=0.1",
    "--batch_size=8",
    "--train_length=2,3",
    "--test_lengths=5,6",
    "--evaluation_examples=10",
    "--max_position=32",
    "--buckets=2",
    f"--steps={STEPS}",
    f"--evaluate_every={EVALUATE_EVERY}",
    # Often enough that many faults meet a checkpoint being written.
    "--steps_per_loop=2",
]
OFTEN = ["--checkpoint_every=4"]
ALL = ["--checkpoint_every=2", "--keep_checkpoints=100000"]

FRESH = 1 / 6
"""Share of starts that import TensorFlow anew, and may be hit there."""

AIMED = 1 / 2
"""Share of faults that wait until a checkpoint is being written."""

PATIENCE = 300
"""Seconds after which a run is said to hang."""

DISK = 2**20
"""Bytes of the small file system."""


class Failure(Exception):
    """A run that lost something, or did not say clearly what happened."""


class Trainer:
    """A process that trains: a fork of this one, or a fresh one.

    A fork does as a fresh process would while this one has computed nothing.

    Args:
        arguments: What follows the name of the module in its command.
        log: File that its output is added to.
        module: The module that it runs.
        fresh: Whether it imports everything anew.
        environment: Variables that it gets.
    """

    def __init__(
        self,
        arguments,
        log,
        *,
        module="trainers.algorithmic",
        fresh=False,
        environment=None,
    ):
        self.fresh = fresh
        self.log = pathlib.Path(log)
        self.log.touch()
        # What is buffered would be written twice.
        sys.stdout.flush()
        self.pid = os.fork()
        self._status = None
        if not self.pid:
            try:
                with self.log.open("a") as output, open(os.devnull) as nothing:
                    os.dup2(nothing.fileno(), 0)
                    os.dup2(output.fileno(), 1)
                    os.dup2(output.fileno(), 2)
                os.environ.update(environment or {})
                os._exit(_become(module, arguments, fresh))
            finally:
                os._exit(70)

    def wait(self, seconds=PATIENCE):
        """The exit status, negative for a signal; `None` if still running."""
        until = time.monotonic() + seconds
        while self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() >= until:
                break
            else:
                time.sleep(0.002)
        return self._status

    def send(self, number):
        """Sends a signal, unless the process has ended."""
        if self.wait(0) is None:
            os.kill(self.pid, number)

    def end(self):
        """Kills what is still running."""
        self.send(signal.SIGKILL)
        self.wait()

    @property
    def output(self):
        """What the process has written."""
        return self.log.read_text()


def _become(module, arguments, fresh):
    # A job in the background ignores the latter.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # What a worker starts again that has lost another one.
    sys.orig_argv = [sys.executable, "-m", module, *arguments]
    if fresh:
        os.environ["PYTHONUNBUFFERED"] = "1"
        # Set by our own import of the trainers.
        os.environ.pop("TF_CPP_MIN_LOG_LEVEL", None)
        os.execv(sys.executable, sys.orig_argv)
    sys.stdout.reconfigure(line_buffering=True)
    sys.argv = [module, *arguments]
    sys.modules.pop(module, None)
    try:
        runpy.run_module(module, run_name="__main__")
        status = 0
    except SystemExit as error:
        status = error.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    return status


@dataclasses.dataclass(frozen=True)
class Reference:
    """What is known of undisturbed runs.

    Attributes:
        left: What they leave, as `left_by` has it.
        states: `{step: state of the checkpoint}`.
        seconds: How long one takes, by whether it is fresh.
    """

    left: dict
    states: dict
    seconds: dict


def checkpoints(path):
    """`{step: path}` of the checkpoints of a run, in their order."""
    found = (path / "checkpoints").glob("checkpoint-*.npz")
    by_step = {int(file.stem.partition("-")[2]): file for file in found}
    return dict(sorted(by_step.items()))


def state(path):
    """All bits of a checkpoint but for the time it took."""
    with np.load(path) as arrays:
        return {
            name: (arrays[name].dtype.str, arrays[name].tobytes())
            for name in arrays.files
            if name != "seconds"
        }


def logged(path):
    """Rows of `metrics.csv` without times."""
    if not (path / "metrics.csv").exists():
        return []
    with (path / "metrics.csv").open(newline="") as file:
        return [
            (row["step"], row["metric"], row["length"], row["value"])
            for row in csv.DictReader(file)
        ]


def left_by(path):
    """What a finished run left, without what may differ."""
    rows = logged(path)
    results = json.loads((path / "results.json").read_text())
    del results["train"], results["config"]
    return {
        "losses": [row for row in rows if row[1] == "train_loss"],
        # An evaluation that was begun twice has its first rows twice.
        "evaluations": {row for row in rows if row[1] != "train_loss"},
        "results": results,
        "best weights": {
            file.name: state(file)
            for file in (path / "checkpoints").glob("best-*.npz")
        },
        "plot": (path / "length_generalization.png").exists(),
    }


class Run:
    """A run that is disturbed, and what is known of it.

    Args:
        path: Working directory.
        logs: Directory of the output of every start.
        reference: The `Reference`.
        rng: `random.Random` of this run.
    """

    def __init__(self, path, logs, reference, rng):
        self.path = path
        self.reference = reference
        self.rng = rng
        self.logs = []
        self.damaged = {}
        self.log_directory = logs
        self.started = 0.0
        logs.mkdir(parents=True)

    def start(self, fresh=None):
        """Starts the command once more."""
        if fresh is None:
            fresh = self.rng.random() < FRESH
        log = self.log_directory / f"start-{len(self.logs)}.log"
        self.logs.append(log)
        arguments = [*FLAGS, *OFTEN, f"--workdir={self.path}"]
        self.started = time.time()
        return Trainer(arguments, log, fresh=fresh)

    def moment(self, output):
        """What the run was doing when it was last seen."""
        if "replica(s), here" not in output:
            return "starting"
        if self.is_saving():
            return "saving"
        if (self.path / "results.json").exists():
            return "finishing"
        steps = self.logged_steps()
        if steps and steps[-1] % EVALUATE_EVERY == 0:
            return "evaluating"
        return "training"

    def is_saving(self):
        """Whether a checkpoint is being written, or was at the end."""
        for file in self.path.glob("checkpoints/*.partial"):
            # Not what an earlier end has left; gone, if it is complete.
            with contextlib.suppress(FileNotFoundError):
                if file.stat().st_mtime > self.started:
                    return True
        return False

    def wait_for_saving(self, trainer):
        """Waits for that a little; returns the trainer's exit status."""
        until = time.monotonic() + 2
        while (status := trainer.wait(0)) is None:
            if self.is_saving() or time.monotonic() >= until:
                break
            time.sleep(0.0001)
        return status

    def logged_steps(self):
        """Numbers of the steps in the metrics."""
        return [int(row[0]) for row in logged(self.path)]

    def check_checkpoints(self):
        """Raises `Failure` unless all checkpoints are what they must be."""
        for step, file in checkpoints(self.path).items():
            if self.is_damaged(file):
                continue
            if state(file) != self.reference.states[step]:
                raise Failure(f"{file} differs from the undisturbed run's")

    def is_damaged(self, file):
        """Whether a checkpoint is as the drill has damaged it."""
        return self.damaged.get(file) == file.read_bytes()

    def check_end(self):
        """Raises `Failure` unless the run ended as the undisturbed one."""
        self.check_checkpoints()
        if STEPS not in checkpoints(self.path):
            raise Failure("the last checkpoint is missing")
        expected = self.reference.left
        for name, found in left_by(self.path).items():
            if found != expected[name]:
                raise Failure(f"{name} differ from the undisturbed run's")


def kill(run, trainer):
    """Kills a run; returns how it took it."""
    trainer.send(signal.SIGKILL)
    trainer.wait()
    return "killed"


def stop(number):
    """A fault that asks a run to stop by a signal."""
    name = signal.Signals(number).name

    def fault(run, trainer):
        early = run.moment(trainer.output) == "starting"
        trainer.send(number)
        late = STEPS in run.logged_steps()
        status = trainer.wait()
        output = trainer.output
        said_so = f"stopped by {name}: the same command goes on" in output
        if status == 128 + number and said_so and "Traceback" not in output:
            if run.logged_steps()[-1] not in checkpoints(run.path):
                raise Failure(f"the steps before {name} were not saved")
            return "saved and stopped"
        # While Python imports, and after all is written, it does as it does.
        unguarded = run.moment(output) in ("starting", "finishing")
        if unguarded and (status == -number or "KeyboardInterrupt" in output):
            return "ended by the signal"
        # Some imports swallow it.
        swallowed = number == signal.SIGINT and early
        if status == 0 and (late or swallowed):
            return "ran to its end"
        raise Failure(f"exit status {status} after {name}")

    return fault


def truncate(run, trainer):
    """Kills a run and damages its newest checkpoint, if there is one."""
    trainer.send(signal.SIGKILL)
    trainer.wait()
    found = checkpoints(run.path)
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


def fill(run, trainer):
    """Fills the file system of a run but for a few bytes."""
    ballast = run.path.parent / "ballast"
    # At times enough for all but the next checkpoint.
    room = run.rng.randrange(28_000)
    try:
        with ballast.open("wb", buffering=0) as file:
            while file.write(bytes(2**16)):
                pass
    except OSError:
        os.truncate(ballast, max(0, ballast.stat().st_size - room))
    status = trainer.wait()
    output = trainer.output
    try:
        if status == 0:
            return "ran to its end"
        if status is None or "Traceback" in output:
            raise Failure(f"exit status {status} on a full disk")
        lines = re.findall("^error: .*", output, re.MULTILINE)
        line = "; ".join(lines) or "no message"
        # 2, for what can be known before, where it could not even begin.
        early = run.moment(output) == "starting"
        named = re.match(r"error: cannot write (\S+): No space left", line)
        if not named or len(lines) > 1 or status != (2 if early else 1):
            raise Failure(f"exit status {status} on a full disk: {line}")
        file = re.sub(r"\d+", "N", pathlib.Path(named[1]).name)
        return f"said that it cannot write {file}"
    finally:
        ballast.unlink()


FAULTS = {
    "sigkill": kill,
    "sigterm": stop(signal.SIGTERM),
    "sigint": stop(signal.SIGINT),
    "truncate": truncate,
    "disk": fill,
}
KINDS = (*FAULTS, "worker")


def disturb(run, kinds, tally):
    """Disturbs a run by faults of the kinds, taken from the end, till it ends.

    Those that it escapes by ending before are left in the list.
    """
    lifetime = run.reference.seconds
    while True:
        trainer, start = run.start(), time.monotonic()
        try:
            moment = run.rng.uniform(0, lifetime[trainer.fresh])
            status = trainer.wait(moment if kinds else PATIENCE)
            if status is None and kinds and run.rng.random() < AIMED:
                status = run.wait_for_saving(trainer)
            if status is None and kinds:
                kind, how = kinds.pop(), "failed"
                met = run.moment(trainer.output)
                try:
                    how = FAULTS[kind](run, trainer)
                    if trainer.wait(0) == -signal.SIGKILL:
                        met = run.moment(trainer.output)
                    run.check_checkpoints()
                finally:
                    if how is None:
                        kinds.append(kind)
                    else:
                        tally.add(kind, met, how)
                continue
        finally:
            trainer.end()
        if status == 0:
            if len(run.logs) == 1:
                # Others that use the machine make it slower and faster.
                lifetime[trainer.fresh] = time.monotonic() - start
            return
        none_whole = all(map(run.is_damaged, checkpoints(run.path).values()))
        said_so = "is whole and of this model: remove it" in trainer.output
        if not (none_whole and said_so and status == 1):
            raise Failure(f"exit status {status} without a fault")
        shutil.rmtree(run.path / "checkpoints")


class Workers:
    """Two workers on this machine, and what restarts them when they end.

    Args:
        path: Working directory.
        logs: Directory of their output.
        flags: Further flags.
    """

    def __init__(self, path, logs, flags):
        self._flags = [*FLAGS, *flags, f"--workdir={path}"]
        self._logs = logs
        self._environments = environments(2)
        self.trainers = [self._start(index) for index in range(2)]

    def _start(self, index):
        return Trainer(
            [*self._flags, "--strategy=multi_worker"],
            self._logs / f"worker-{index}.log",
            fresh=True,
            environment=self._environments[index],
        )

    def restart(self, index):
        """Starts a killed worker, and those again that had finished."""
        for other, trainer in enumerate(self.trainers):
            if other == index or trainer.wait(0) == 0:
                self.trainers[other] = self._start(other)

    def statuses(self):
        """Exit statuses of the workers, `None` of those that still run."""
        return [trainer.wait(0) for trainer in self.trainers]

    def wait(self, until):
        """Waits until then, or until all have ended; tells which it was."""
        while time.monotonic() < until:
            statuses = self.statuses()
            if statuses == [0, 0]:
                return True
            for index, status in enumerate(statuses):
                if status:
                    raise Failure(f"worker {index} ended with {status}")
            time.sleep(0.05)
        return False

    def end(self):
        """Kills those that still run."""
        for trainer in self.trainers:
            trainer.end()


def free_ports(count):
    """Numbers of ports that are free just now."""
    found = []
    while len(found) < count:
        # Below those that outgoing connections take.
        port = random.randrange(20_000, 32_000)
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            found.append(port)
    return found


def environments(workers):
    """The variable TF_CONFIG of workers that are all on this machine."""
    hosts = [f"127.0.0.1:{port}" for port in free_ports(workers)]
    configs = [
        {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": n}}
        for n in range(workers)
    ]
    return [{"TF_CONFIG": json.dumps(config)} for config in configs]


def disturb_workers(run, kinds, tally):
    """The same for two workers: one is killed, and comes back after a while."""
    workers = Workers(run.path, run.log_directory, OFTEN)
    run.logs += [trainer.log for trainer in workers.trainers]
    try:
        while True:
            moment = run.rng.uniform(0, run.reference.seconds[True])
            patience = moment if kinds else PATIENCE
            if workers.wait(time.monotonic() + patience):
                return
            if not kinds:
                raise Failure(f"the workers hang: {workers.statuses()}")
            running = [n for n, s in enumerate(workers.statuses()) if s is None]
            index = run.rng.choice(running)
            output = workers.trainers[0].output
            workers.trainers[index].end()
            moment = run.moment(output.rpartition("waiting for all")[2])
            tally.add(kinds.pop(), moment, f"worker {index} killed")
            # Before or after the other one has noticed.
            time.sleep(run.rng.uniform(0, 12))
            workers.restart(index)
    finally:
        workers.end()
        tally.add_restarts(run.logs)
        run.check_checkpoints()


class Tally:
    """Counts of faults, and the failures with their logs.

    Args:
        planned: `{kind: number of faults}`.
    """

    def __init__(self, planned):
        self.planned = planned
        self.kinds = {
            kind: {
                "faults": 0,
                "runs": 0,
                "passed": 0,
                "moments": collections.Counter(),
                "endings": collections.Counter(),
            }
            for kind in planned
        }
        self.failures = []
        self.runs = 0
        self._met = set()
        self._start = time.monotonic()

    @property
    def faults(self):
        """Number of faults so far."""
        return sum(found["faults"] for found in self.kinds.values())

    def add(self, kind, moment, ending):
        """Counts a fault by what it met and what it led to."""
        found = self.kinds[kind]
        found["faults"] += 1
        found["moments"][moment] += 1
        found["endings"][ending] += 1
        self._met.add(kind)

    def add_restarts(self, logs):
        """Counts how often a worker noticed that the other one was lost."""
        lost = sum(log.read_text().count("worker was lost") for log in logs)
        self.kinds["worker"]["endings"]["the other restarted itself"] += lost

    def add_run(self, run, problem):
        """Counts a run that ended, and tells how far the drill is."""
        self.runs += 1
        for kind in self._met:
            self.kinds[kind]["runs"] += 1
            self.kinds[kind]["passed"] += problem is None
        if problem is not None:
            log = "\n".join(log.read_text()[-4000:] for log in run.logs[-2:])
            print(f"{run.path.name}: {problem}\n{log}", flush=True)
            self.failures.append(
                {
                    "run": run.path.name,
                    "faults": sorted(self._met),
                    "problem": problem,
                    "log": log,
                }
            )
        self._met.clear()
        planned = sum(self.planned.values())
        rate = self.faults / (time.monotonic() - self._start)
        left = (planned - self.faults) / max(rate, 1e-9)
        print(
            f"{self.faults}/{planned} faults in {self.runs} runs, "
            f"{len(self.failures)} failures; {60 * rate:.1f} a minute, "
            f"{clock(left)} left",
            flush=True,
        )


def undisturbed(root, workers):
    """The `Reference` of one device, or of two workers."""
    path, logs = root / "undisturbed", root / "undisturbed-logs"
    logs.mkdir(parents=True)
    start = time.monotonic()
    if workers:
        both = Workers(path, logs, ALL)
        try:
            if not both.wait(start + PATIENCE):
                raise SystemExit(f"the undisturbed run hangs, see {logs}")
        finally:
            both.end()
    else:
        arguments = [*FLAGS, *ALL, f"--workdir={path}"]
        trainer = Trainer(arguments, logs / "start.log", fresh=True)
        if trainer.wait() != 0:
            raise SystemExit(trainer.output)
    seconds = {True: time.monotonic() - start}
    print(f"undisturbed: {seconds[True]:.1f} s", flush=True)
    states = {step: state(file) for step, file in checkpoints(path).items()}
    reference = Reference(left_by(path), states, seconds)
    if not workers:
        # A fork must do as a fresh process does, and is the usual start.
        forked = Run(root / "forked", root / "forked-logs", reference, None)
        start = time.monotonic()
        trainer = forked.start(fresh=False)
        if trainer.wait() != 0:
            raise SystemExit(trainer.output)
        seconds[False] = time.monotonic() - start
        print(f"undisturbed, forked: {seconds[False]:.1f} s", flush=True)
        forked.check_end()
    return reference


def mount(path):
    """Mounts a small file system; returns what hinders that, or `None`."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "drill", path]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        return str(error)
    return done.stderr.strip() or None


def drill(planned, seed, most, root):
    """Disturbs runs until all planned faults have happened.

    Args:
        planned: `{kind: number of faults}`.
        seed: Seed of all moments.
        most: Most faults of a run.
        root: Directory for everything.

    Returns:
        The `Tally`, and `{kind: why it was not run}`.
    """
    left_out = {}
    disk = root / "disk"
    if "disk" in planned and (reason := mount(disk)):
        planned = {kind: planned[kind] for kind in planned if kind != "disk"}
        left_out["disk"] = reason
        print(f"disk: not run, as none can be mounted: {reason}")
    tally = Tally(planned)
    decks = {False: [], True: []}
    for kind, faults in planned.items():
        decks[kind == "worker"] += [kind] * faults
    try:
        for workers, deck in decks.items():
            if not deck:
                continue
            random.Random(seed).shuffle(deck)
            reference = undisturbed(root / f"undisturbed-{workers}", workers)
            while deck:
                name = f"run-{tally.runs}"
                run = Run(
                    disk / name if "disk" in planned else root / name,
                    root / f"{name}-logs",
                    reference,
                    random.Random(f"{seed} {name}"),
                )
                kinds, deck[-most:] = deck[-most:], []
                problem = None
                try:
                    (disturb_workers if workers else disturb)(run, kinds, tally)
                    run.check_end()
                except Failure as error:
                    problem = str(error)
                tally.add_run(run, problem)
                # What the run escaped hits the next one.
                deck += kinds
                shutil.rmtree(run.path, ignore_errors=True)
    finally:
        if "disk" in planned:
            subprocess.run(["umount", disk], check=True)
    return tally, left_out


def main():
    """Runs the drill, writes its report; exit status 1 if anything failed."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], allow_abbrev=False
    )
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=4, help="faults of a run")
    parser.add_argument(
        "--output", default="benchmarks/results/fault_drill.json"
    )
    arguments = parser.parse_args()
    kinds = arguments.kinds.split(",")
    for kind in kinds:
        if kind not in KINDS:
            parser.error(f"--kinds takes {', '.join(KINDS)}; got {kind}.")
    if min(arguments.faults, arguments.most) < 1:
        parser.error("--faults and --most must be at least 1.")
    share, more = divmod(arguments.faults, len(kinds))
    planned = {kind: share + (n < more) for n, kind in enumerate(kinds)}
    # An end that unmounts and removes everything.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="fault-drill-") as root:
        start = time.monotonic()
        tally, left_out = drill(
            planned, arguments.seed, arguments.most, pathlib.Path(root)
        )
    for kind, found in tally.kinds.items():
        print(f"{kind}: {json.dumps(found)}")
    write_report(
        arguments.output,
        command_line("benchmarks.fault_drill"),
        {
            "flags": FLAGS + OFTEN,
            "faults": tally.faults,
            "runs": tally.runs,
            "kinds": tally.kinds,
            "not_run": left_out,
            "failures": tally.failures,
            "seconds": time.monotonic() - start,
        },
    )
    if tally.failures:
        sys.exit(f"{len(tally.failures)} runs failed, see {arguments.output}")


if __name__ == "__main__":
    main()
