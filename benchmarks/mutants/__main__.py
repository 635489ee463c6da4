"""Which small errors in the source do the tests notice?

Mutants are errors of one place each: a sign, an index, a mask, an axis, a cast,
a guard, a flag, or a mend of the history that is reverted. `areas.toml` says
how many there are in each area. The command clones the checkout and records
once which lines of the source each test runs. Then it writes one mutant after
the other into the clone and runs the tests of its lines, the quickest first,
until one of them fails.

    python -m benchmarks.mutants --suite=now
    python -m benchmarks.mutants --suite=before --tests=COMMIT --areas=records

`--tests` takes the tests of another commit, so that two suites can be compared
on one source. Recording takes about an hour on two quiet cores, the mutants one
or two more. A stopped command goes on where it was; `--minutes` limits it.

After a change, `--again` is quicker. It records nothing, and tries each mutant
with the test that killed it in another suite of the report. Without it, the
next command tries those that are left.

    python -m benchmarks.mutants --suite=changed --again=now
    python -m benchmarks.mutants --suite=changed

Tests that are marked `slow`, `gpu` or `tpu_compile` are left out. Extra:
`mutants`.
"""

import argparse
import concurrent.futures
import json
import pathlib
import queue
import time

from benchmarks.mutants.mutant import read_mutants
from benchmarks.mutants.suite import Suite
from trainers.records.markdown import table


def make_table(report, mutants):
    """Makes the table of areas and suites.

    Args:
        report: Dict from a suite to a dict from a mutant to its row.
        mutants: List of `Mutant`.

    Returns:
        The table in Markdown.
    """
    rows = []
    for area in sorted({mutant.area for mutant in mutants}):
        names = [mutant.name for mutant in mutants if mutant.area == area]
        row = {"area": area, "mutants": len(names)}
        for suite, tried in report.items():
            found = [tried[name] for name in names if name in tried]
            killed = sum(each["killed_by"] is not None for each in found)
            minutes = sum(each["seconds"] for each in found) / 60
            row[f"{suite}: killed"] = f"{killed} of {len(found)}"
            row[f"{suite}: minutes"] = f"{minutes:.0f}"
        rows.append(row)
    return table(rows[0], [map(str, row.values()) for row in rows])


def try_all(suite, mutants, tried, write, until, killers=None):
    """Tries the mutants that are not tried yet, `suite.jobs` at a time.

    Args:
        suite: The `Suite`.
        mutants: List of `Mutant`.
        tried: Dict from the name of a mutant to its row, which is filled.
        write: Called after each mutant.
        until: Time after which no further mutant is begun.
        killers: Dict from the name of a mutant to the tests to try it with;
            others are left out, and those that survive; `None`: all tests.
    """
    clones = queue.SimpleQueue()
    for number in range(suite.jobs):
        suite.clone(number)
        clones.put(number)

    def try_next(mutant):
        if time.time() > until:
            return
        number = clones.get()
        try:
            tests = killers and killers[mutant.name]
            row = suite.try_mutant(mutant, number, tests)
        finally:
            clones.put(number)
        print(f"{row['killed_by'] or 'SURVIVED'}: {mutant.name}", flush=True)
        if row["killed_by"] or killers is None:
            tried[mutant.name] = row
            write()

    missing = [
        mutant
        for mutant in mutants
        if mutant.name not in tried
        and (killers is None or mutant.name in killers)
    ]
    with concurrent.futures.ThreadPoolExecutor(suite.jobs) as pool:
        list(pool.map(try_next, missing))


def find_killers(tried):
    """Returns the test that killed each mutant, and all of its parameters.

    Args:
        tried: Dict from the name of a mutant to its row.

    Returns:
        Dict from names to dicts of tests and their seconds at most.
    """
    return {
        name: {row["killed_by"]: 60, row["killed_by"].partition("[")[0]: 240}
        for name, row in tried.items()
        if "::" in (row["killed_by"] or "")
    }


def main(argv=None):
    """Records the suite, tries the mutants and writes the report."""
    parser = argparse.ArgumentParser(
        "benchmarks.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--suite", required=True, help="Name of the suite in the report.")
    add("--tests", default="", help="Commit of the tests; default: HEAD.")
    add("--again", default="", help="Suite whose kills are tried again.")
    add("--areas", default="", help="Areas, separated by commas; default: all.")
    add("--jobs", type=int, default=2, help="Processes at a time.")
    add("--minutes", type=float, default=1e6, help="Time limit.")
    add("--root", default="runs/mutants", help="Working folder.")
    add("--output", default="benchmarks/results/mutants.json", help="Report.")
    arguments = parser.parse_args(argv)
    until = time.time() + 60 * arguments.minutes
    areas = [area for area in arguments.areas.split(",") if area]
    mutants = read_mutants(".", areas)

    output = pathlib.Path(arguments.output)
    report = json.loads(output.read_text()) if output.exists() else {}
    tried = report.setdefault(arguments.suite, {})
    root = pathlib.Path(arguments.root, arguments.suite).absolute()
    suite = Suite(root, arguments.tests, arguments.jobs)
    killers = None
    if arguments.again:
        killers = find_killers(report[arguments.again])
    if arguments.again or suite.record(until):
        try_all(
            suite,
            mutants,
            tried,
            lambda: output.write_text(json.dumps(report, indent=1) + "\n"),
            until,
            killers,
        )
    print(make_table(report, mutants))
    for mutant in mutants:
        if mutant.name in tried and tried[mutant.name]["killed_by"] is None:
            print(f"survived {arguments.suite}: {mutant.name}")


if __name__ == "__main__":
    main()
