"""A root directory of a sweep whose files a test writes."""

import dataclasses
import json
import os
import sys

from tests.trainers.toy import TOY
from trainers.records.workdir import Workdir
from trainers.sweeps.grids.grid import Run
from trainers.sweeps.root import SweepRoot
from trainers.sweeps.work import Job


def make_run(seed=0, after=None, row="row", **flags):
    return Run(
        trainer="algorithmic",
        flags={**TOY, "seed": seed, **flags},
        row=row,
        column="column",
        after=after,
    )


def open_root(path, **arguments):
    fields = {"directory": str(path), "environment": {}}
    return SweepRoot(path, arguments=arguments, **fields)


def write_results(root, run):
    """Writes the files of a run that has finished; returns its directory."""
    config = dataclasses.replace(
        root.make_config(run), **root._find_source(run)
    )
    with Workdir(root.find_workdir(run), config, run.trainer) as workdir:
        results = {
            "trainer": run.trainer,
            "digest": workdir.digest,
            "config": workdir.config,
            "final": {},
            "train": {"steps": 2},
        }
        workdir.write_json("results.json", results)
    return workdir.path


def write_progress(root, run, *rows):
    """Writes the steps and seconds that a run or a job has logged."""
    path = root.find_workdir(run)
    path.mkdir(parents=True, exist_ok=True)
    lines = [f"{step},{seconds},train_loss,,0.5" for step, seconds in rows]
    text = "\n".join(["step,seconds,metric,length,value", *lines, ""])
    (path / "metrics.csv").write_text(text)


def write_record(root, run, **record):
    path = root.find_workdir(run).with_name(f"{run.name}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))


def make_job(path, *arguments, **fields):
    """Makes a job of the fake trainer."""
    trainer = "tests.trainers.sweeps.fake_trainer"
    known = {
        "name": "run",
        "root": str(path),
        "arguments": (trainer, "--pause=0", *arguments),
        "directory": os.getcwd(),
        "environment": {"PYTHONPATH": os.pathsep.join(sys.path)},
    }
    return Job(**{**known, **fields})
