"""A suite of tests: which lines each test runs, and which mutants it kills."""

import collections
import dataclasses
import gzip
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import time

SOURCES = ("keras_lengen", "datasets", "trainers")
MARKS = "not slow and not gpu and not tpu_compile"
COVERAGE = """[run]
source = {sources}
context = ${{PYTEST_CURRENT_TEST-}}
parallel = true
data_file = {folder}/coverage
"""
"""Settings; a process of a test reads the name of the test."""


@dataclasses.dataclass(frozen=True)
class Suite:
    """Tests of a commit over the source of the checkout.

    Attributes:
        root: Working folder: clones, and what was recorded.
        tests: Commit whose folder `tests` is used, "" for that of HEAD.
        jobs: Number of processes at a time.
        checkout: The repository.
    """

    root: pathlib.Path
    tests: str = ""
    jobs: int = 1
    checkout: str = "."

    def clone(self, number=0):
        """Clones HEAD with the tests of the suite, or finds the clone."""
        clone = self.root / f"clone_{number}"
        if not clone.exists():
            _run("git", "clone", "--quiet", self.checkout, str(clone))
            if self.tests:
                shutil.rmtree(clone / "tests")
                _run("git", "checkout", "-q", self.tests, "tests", cwd=clone)
        return clone

    def record(self, until):
        """Records the tests of one folder after the other.

        Args:
            until: Time after which no further folder is begun.

        Returns:
            Whether all folders are recorded.
        """
        clone = self.clone()
        for folder in _test_folders(clone):
            file = self.root / "records" / (folder.replace("/", ".") + ".gz")
            if file.exists():
                continue
            if time.time() > until:
                return False
            print(f"recording {folder}", flush=True)
            _write(file, self._record_folder(clone, folder))
        return True

    def _record_folder(self, clone, folder):
        work = self.root / "coverage"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        settings = work / "settings"
        settings.write_text(
            COVERAGE.format(sources=",".join(SOURCES), folder=work)
        )
        # Other modules of tests are for other backends and processes.
        names = "test_*.py" if folder.startswith("tests") else "*.py"
        done = _pytest(
            clone,
            *sorted(str(p) for p in (clone / folder).glob(names)),
            *("-n", str(self.jobs), "--dist=loadscope", "-m", MARKS),
            *("--cov", f"--cov-config={settings}", "--cov-context=test"),
            *("--cov-report=", "-p", "benchmarks.mutants.plugin"),
            SECONDS_FILE=str(work / "seconds.json"),
            PROCESS_SETTINGS=str(settings),
        )
        for line in done.stdout.splitlines():
            if line.startswith(("FAILED ", "ERROR ")):
                print(f"left out: {line}", flush=True)
        seconds = json.loads((work / "seconds.json").read_text())
        lines = collections.defaultdict(lambda: collections.defaultdict(set))
        for data in work.glob("coverage*"):
            for path, line, test in _read_contexts(data, clone):
                if test in seconds:
                    lines[path][line].add(test)
        return {
            "seconds": seconds,
            "lines": {
                path: {line: sorted(tests) for line, tests in each.items()}
                for path, each in lines.items()
            },
        }

    def find_tests(self, path, lines):
        """Returns the seconds of the tests for some lines, in their order.

        First come those of the file that is named after the source. TensorFlow
        converts what it compiles, so that not all lines are seen that they run.
        Then come tests that run the lines. In both, the cheapest come first.
        Lines that run when the file is imported belong to no test: for them,
        the tests are those that run any line of the file.
        """
        own, found, others = {}, {}, {}
        named_after = f"/test_{pathlib.Path(path).stem}.py::"
        for file in sorted((self.root / "records").glob("*.gz")):
            record = json.loads(gzip.decompress(file.read_bytes()))
            seconds = record["seconds"]
            own |= {
                test: seconds[test] for test in seconds if named_after in test
            }
            for line, tests in record["lines"].get(path, {}).items():
                chosen = found if int(line) in lines else others
                chosen |= {test: seconds[test] for test in tests}

        def by_seconds(tests):
            return dict(sorted(tests.items(), key=lambda one: one[1]))

        return {**by_seconds(own), **by_seconds(found or others)}

    def try_mutant(self, mutant, number, tests=None):
        """Runs the tests of the lines of a mutant until one fails.

        Args:
            mutant: The `Mutant`.
            number: Number of the clone to try it in.
            tests: Dict from other tests to their seconds; `None`: those of
                `find_tests`.

        Returns:
            Dict: number of `tests` that run its lines, `killed_by`, the test
            that failed, and `seconds`. Tests that take three times as long as
            before, or that cannot be collected, count as failed.
        """
        clone = self.clone(number)
        if tests is None:
            tests = self.find_tests(mutant.path, mutant.lines(clone))
        killed_by = None
        start = time.time()
        with mutant.applied(clone):
            if tests:
                killed_by = self._find_failure(clone, tests, number)
        return {
            "tests": len(tests),
            "killed_by": killed_by,
            "seconds": round(time.time() - start, 1),
        }

    def _find_failure(self, clone, tests, number):
        listed = self.root / f"tests_{number}.txt"
        while tests:
            listed.write_text("\n".join(tests))
            try:
                done = _pytest(
                    clone,
                    *(f"@{listed}", "-x", "-n", "0", "-m", MARKS, "--tb=no"),
                    timeout=120 + 3 * sum(tests.values()),
                )
            except subprocess.TimeoutExpired:
                return "time limit"
            if done.returncode == 0:
                return None
            for line in done.stdout.splitlines():
                if line.startswith(("FAILED ", "ERROR ")):
                    return line.partition(" ")[2].partition(" - ")[0]
            # Names of tests may have numbers that differ between two runs.
            missing = tuple(
                str(pathlib.Path(path).relative_to(clone))
                for path in re.findall(
                    r"^ERROR: not found: (\S+)",
                    done.stdout + done.stderr,
                    re.MULTILINE,
                )
            )
            if not missing:
                return "collection"
            tests = {
                test: seconds
                for test, seconds in tests.items()
                if not test.startswith(missing)
            }
        return None


def _test_folders(clone):
    """Folders with tests or, in the source, with examples in docstrings."""
    folders = {
        str(path.parent.relative_to(clone))
        for source in ("tests", *SOURCES)
        for path in (clone / source).rglob("*.py")
        if source != "tests" or path.name.startswith("test_")
    }
    return sorted(folders)


def _read_contexts(data, clone):
    """Yields file, line and test of the data of one process."""
    from coverage.numbits import numbits_to_nums

    with sqlite3.connect(data) as base:
        rows = base.execute(
            "select file.path, context.context, numbits from line_bits"
            " join file on file.id = line_bits.file_id"
            " join context on context.id = line_bits.context_id"
        )
        for path, context, bits in rows:
            # `test (phase)` in processes, `|test|phase` in the tests' own.
            test = context.split(" (")[0].strip("|").split("|")[0]
            path = pathlib.Path(path)
            # Some tests run files of other folders.
            if path.is_relative_to(clone):
                for line in numbits_to_nums(bits):
                    yield str(path.relative_to(clone)), line, test


def _pytest(clone, *arguments, timeout=None, **environment):
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *arguments,
        ],
        cwd=clone,
        env={
            **{
                k: v
                for k, v in os.environ.items()
                if k != "PYTEST_CURRENT_TEST"
            },
            "PYTHONPATH": str(clone),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def _run(*command, **kwargs):
    subprocess.run(command, check=True, **kwargs)


def _write(file, record):
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".part")
    temporary.write_bytes(gzip.compress(json.dumps(record).encode()))
    temporary.replace(file)
