"""The report of a choice."""

import dataclasses

from trainers.choosing.advice import (
    USABLE,
    advise,
    is_above_floor,
    list_best,
)
from trainers.choosing.code import write_example
from trainers.records.seeds import find_deviation
from trainers.reports.blocks import Code, Entry, Heading, Paragraph, Table
from trainers.reports.reading import read_saved, report_run
from trainers.reports.runs import make_grid
from trainers.reports.writing import write_report

HEAD = (
    *("candidate", "score", "usable up to", "above the floor up to"),
    *("seeds", "minutes a run"),
)
NOTE = (
    "score: mean and standard deviation over the seeds. usable up to: the "
    f"longest length that keeps {USABLE:.0%} of the metric at trained lengths. "
    "Bold: no other candidate is seen to be better. Two candidates differ if a "
    "t test of their scores says so at the level of 5%, corrected for the "
    "number of candidates, with the deviation of a seed pooled over them."
)


def report(root, runs, outcomes, problem):
    """Writes the report, and prints the advice.

    Args:
        root: The `SweepRoot`.
        runs: Dict from candidates to the list of their `Run`s, all finished.
        outcomes: Dict from candidates to their `Outcome`s.
        problem: Their `Problem`.
    """
    advice = advise(outcomes, problem)
    code = ""
    if is_above_floor(outcomes, problem):
        best = list_best(outcomes, problem)[0]
        code = write_example(root.make_config(runs[best][0]))
    every = [run for of_candidate in runs.values() for run in of_candidate]
    saved = [read_saved(root.find_workdir(run))[0] for run in every]
    title = f"Encodings for {problem.title}"
    grid = dataclasses.replace(make_grid(saved, ""), title=title)
    write_report(
        root.path / "report",
        grid,
        [
            report_run(run, of_run, grid)
            for run, of_run in zip(grid.runs, saved, strict=True)
        ],
        f"Candidates: {', '.join(runs)}.",
        lead=[
            Paragraph(advice),
            *([Code(code)] if code else []),
            make_table(outcomes, problem),
            Paragraph(NOTE),
            Heading("All runs"),
        ],
    )
    print("\n".join(filter(None, [advice, code])))


def make_table(outcomes, problem):
    """Returns the `Table` of candidates, the best one first.

    Args:
        outcomes: Dict from candidates to `Outcome`s.
        problem: Their `Problem`.
    """
    best = list_best(outcomes, problem)
    rows = sorted(
        outcomes.items(),
        key=lambda item: item[1].score,
        reverse=problem.metrics[0].higher_is_better,
    )
    return Table(
        HEAD,
        [
            (
                name,
                Entry(_describe_score(outcome), best=name in best),
                Entry(_describe_length(outcome.usable, problem)),
                Entry(_describe_length(outcome.reach, problem)),
                Entry(str(len(outcome.scores))),
                Entry(f"{outcome.minutes:.1f}"),
            )
            for name, outcome in rows
        ],
    )


def _describe_score(outcome):
    deviation, freedom = find_deviation([outcome.scores])
    return f"{outcome.score:.3f}" + (f" ± {deviation:.3f}" if freedom else "")


def _describe_length(length, problem):
    if length is None:
        return "no floor"
    return problem.describe_length(length) if length else "nowhere"
