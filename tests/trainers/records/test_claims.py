import contextlib
import json
import os
import subprocess
import sys

from tests.trainers.sweeps.files import open_root
from trainers.records import claims
from trainers.records.claims import claim, is_locked


@contextlib.contextmanager
def orphan(path, name, **about):
    """Holds a claim as a command whose sweep was killed does."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with claim(path / "running" / name, {"process": process.pid, **about}):
        yield path / "running" / name


def test_what_a_killed_process_left_can_be_claimed(tmp_path):
    path = tmp_path / "running"
    path.write_text("a long text of a process that is gone" * 9)
    with claim(path) as first:
        assert first.was_left
        assert json.loads(path.read_text())["process"] == os.getpid()
        assert is_locked(path)
        with claim(path) as second:
            assert second is None
    assert not path.exists()
    with claim(path) as again:
        assert not again.was_left


def test_a_claim_that_its_holder_removes_is_made_again(tmp_path, monkeypatch):
    path, lock = tmp_path / "running", claims._lock

    def remove_first(file):
        monkeypatch.setattr(claims, "_lock", lock)
        path.unlink()
        return lock(file)

    monkeypatch.setattr(claims, "_lock", remove_first)
    with claim(path):
        assert path.exists()


def test_orphans_are_commands_whose_sweep_is_gone(tmp_path):
    root = open_root(tmp_path)
    with (
        claim(tmp_path / "running" / "own"),
        orphan(tmp_path, "other machine", host="elsewhere"),
        orphan(tmp_path, "orphan", devices="5") as path,
    ):
        assert root.list_running() == {"own", "other machine", "orphan"}
        ((found, about),) = root.list_orphans().items()
        assert (found, about["devices"]) == (path, "5")
    assert not (root.list_orphans() or root.list_running())
