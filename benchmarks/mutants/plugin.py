"""Plugin of pytest, used while the lines of tests are recorded.

It writes which tests passed and in how many seconds, and has the lines measured
that processes of tests run. Environment variables name the files:
`SECONDS_FILE`, and `PROCESS_SETTINGS`, settings of the package coverage.
"""

import collections
import json
import os
import pathlib

_seconds = collections.Counter()
_failed = set()


def pytest_configure(config):
    """Starts the measurement in processes of tests, which workers run."""
    if hasattr(config, "workerinput"):
        settings = os.environ["PROCESS_SETTINGS"]
        os.environ["COVERAGE_PROCESS_START"] = settings


def pytest_runtest_logreport(report):
    """Adds the seconds of a phase of a test."""
    _seconds[report.nodeid] += report.duration
    if report.outcome != "passed":
        _failed.add(report.nodeid)


def pytest_sessionfinish(session):
    """Writes the file, in the process that collects the reports."""
    if hasattr(session.config, "workerinput"):
        return
    passed = {
        test: round(seconds, 3)
        for test, seconds in _seconds.items()
        if test not in _failed
    }
    pathlib.Path(os.environ["SECONDS_FILE"]).write_text(json.dumps(passed))
