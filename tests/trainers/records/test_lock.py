"""One process at a time holds the lock of a directory."""

import os

import pytest

from trainers.errors import ConfigError
from trainers.records.lock import lock_directory


def assert_refused(path, message):
    with pytest.raises(ConfigError, match=message), lock_directory(path):
        pytest.fail("it is locked twice")


def test_the_second_is_told_who_holds_it(tmp_path):
    with lock_directory(tmp_path):
        assert_refused(tmp_path, f"by process {os.getpid()} on")
        # It has not written yet.
        (tmp_path / "run.lock").write_text("")
        assert_refused(tmp_path, "in use by another process: wait")


def test_a_file_system_without_locks_is_refused(tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", fail)
    assert_refused(tmp_path, r"has no locks \(No locks available")
