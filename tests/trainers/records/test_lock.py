"""One process at a time holds the lock of a directory."""

import os

import pytest

from trainers.errors import ConfigError
from trainers.records.lock import lock_directory


def test_the_second_is_told_who_holds_it(tmp_path):
    # Of a process that was killed.
    (tmp_path / "run.lock").write_text("a long text " * 99)
    with lock_directory(tmp_path):
        with (
            pytest.raises(ConfigError, match=f"by process {os.getpid()} on"),
            lock_directory(tmp_path),
        ):
            pass
        # It has not written yet.
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
