"""One process at a time holds the lock of a directory."""

import json
import os
import socket
import subprocess
import sys

import pytest

from trainers.errors import ConfigError
from trainers.records.lock import lock_directory

HOLD = """
import pathlib, sys, time
from trainers.records.lock import lock_directory
with lock_directory(pathlib.Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(600)
"""


def test_the_second_is_told_who_holds_it(tmp_path):
    with lock_directory(tmp_path):
        with (
            pytest.raises(ConfigError) as caught,
            lock_directory(tmp_path),
        ):
            pass
        holder = json.loads((tmp_path / "run.lock").read_text())
    assert str(caught.value) == (
        f"{tmp_path} is in use by process {os.getpid()} on "
        f"{socket.gethostname()}, which started at {holder['started']}: wait "
        "for its end, or choose another --workdir."
    )
    with lock_directory(tmp_path):
        pass
    assert not (tmp_path / "run.lock").read_text()


def test_a_holder_that_has_not_written_yet_is_another_process(tmp_path):
    with lock_directory(tmp_path):
        (tmp_path / "run.lock").write_text("")
        with (
            pytest.raises(ConfigError, match="in use by another process: wait"),
            lock_directory(tmp_path),
        ):
            pass


def test_a_file_system_without_locks_is_refused(tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", fail)
    with (
        pytest.raises(ConfigError, match=r"has no locks \(No locks available"),
        lock_directory(tmp_path),
    ):
        pass


@pytest.mark.process
def test_the_lock_of_a_killed_process_is_taken_over(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "locked\n"
        with (
            pytest.raises(ConfigError, match=f"by process {holder.pid} on"),
            lock_directory(tmp_path),
        ):
            pass
        holder.kill()
    # What the dead process wrote is still there.
    assert str(holder.pid) in (tmp_path / "run.lock").read_text()
    with lock_directory(tmp_path):
        assert str(os.getpid()) in (tmp_path / "run.lock").read_text()
