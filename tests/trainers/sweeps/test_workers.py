import concurrent.futures
from unittest import mock

import pytest

from tests.trainers.records.test_claims import orphan
from tests.trainers.sweeps.files import make_run, open_root
from trainers.errors import ConfigError, TrainingError
from trainers.sweeps import workers as module
from trainers.sweeps.options import SweepConfig
from trainers.sweeps.work import JobList
from trainers.sweeps.workers import list_environments, open_workers


def test_jobs_share_cores_and_gpus(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    monkeypatch.delenv("TF_FORCE_GPU_ALLOW_GROWTH", raising=False)
    monkeypatch.setattr(module, "count_cores", lambda: 9)
    cores = {"TF_NUM_INTRAOP_THREADS": "4"}
    assert list_environments(2, gpus=2) == [
        {**cores, "CUDA_VISIBLE_DEVICES": "4,5"},
        {**cores, "CUDA_VISIBLE_DEVICES": "6,7"},
    ]
    with pytest.raises(ConfigError, match=r"3 jobs with 2 .* need 6 .* has 4"):
        list_environments(3, gpus=2)
    # On the same GPUs, they take no more memory than they use.
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    assert list_environments(99, gpus=0)[0] == {
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "TF_NUM_INTRAOP_THREADS": "1",
    }


def open_two(root, monkeypatch):
    """Returns what two workers of this machine are given."""
    given = []
    monkeypatch.setattr(JobList, "work", lambda self, *args: given.append(args))
    config = SweepConfig(jobs=2, gpus=1)
    with open_workers(config, root, [make_run()]) as (jobs, _):
        assert jobs == 2
    return {
        environment["CUDA_VISIBLE_DEVICES"]: {path.name for path in before}
        for environment, before in given
    }


def test_orphans_count_as_jobs(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    root = open_root(tmp_path)
    with orphan(tmp_path, "on 5", devices="5"):
        assert open_two(root, monkeypatch) == {"4": set(), "5": {"on 5"}}
        assert "1 of a killed sweep still running" in capsys.readouterr().out
    with orphan(tmp_path, "a"), orphan(tmp_path, "b"), orphan(tmp_path, "c"):
        assert open_two(root, monkeypatch) == {"4": {"a", "c"}, "5": {"b"}}


def test_files_that_cannot_be_written_end_the_sweep(tmp_path):
    root = open_root(tmp_path)
    (tmp_path / "runs").write_text("not a directory")
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "killed").touch()
    with (
        pytest.raises(TrainingError, match="cannot train runs below "),
        open_workers(SweepConfig(jobs=1), root, [make_run()]) as (_, wait),
    ):
        wait(60)
    assert not list((tmp_path / "sweeps").iterdir())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            "LocalRayletDiedError",
            r"of this machine was lost \(Local",
        ),
        ("OSError", "below .*: no space. Fix this"),
    ],
)
def test_errors_of_ray(tmp_path, monkeypatch, capsys, error, text):
    ray = pytest.importorskip("ray")
    future = concurrent.futures.Future()
    if error == "OSError":
        cause = OSError("no space")
        made = ray.exceptions.RayTaskError("work", "traceback", cause)
        future.set_exception(made.as_instanceof_cause())
    else:
        future.set_exception(getattr(ray.exceptions, error)())
    fake = mock.MagicMock(exceptions=ray.exceptions)
    fake.remote()().remote().future.return_value = future
    fake.nodes.return_value = [{"Alive": True, "Resources": {"CPU": 3.0}}]
    monkeypatch.setattr(module, "_import_ray", lambda: fake)
    config, root = SweepConfig(engine="ray", cpus=4), open_root(tmp_path)
    with (
        pytest.raises(TrainingError, match=text),
        open_workers(config, root, [make_run()]) as (jobs, wait),
    ):
        assert jobs == 1
        assert "has what a run needs (4 CPU)" in capsys.readouterr().out
        wait(60)
    fake.shutdown.assert_called_once_with()
