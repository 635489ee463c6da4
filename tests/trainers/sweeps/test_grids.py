"""Grids: their runs have valid flags, and are those of the papers."""

import collections
import dataclasses
import json
import re

import pytest

from trainers.errors import ConfigError
from trainers.records.opened_run import registered
from trainers.reports.published import list_published, read_published
from trainers.sweeps.grids import GRIDS, SIZES
from trainers.sweeps.grids.grid import Run, list_runs, take_shard
from trainers.sweeps.overrides import with_overrides
from trainers.sweeps.root import VARIED, SweepRoot

NEEDS_FILES = {"kazemnejad_pcfg"}

# Tasks x encodings x seeds x learning rates, as the papers count.
SIZES_OF_PAPERS = {
    "ruoss_table_1": 15 * 11 * 10 * 3,
    "ruoss_table_2": 15 * 11 * 10 * 3,
    "ruoss_table_3": 15 * 2 * 10 * 3,
    "ruoss_table_4": 15 * 11 * 10 * 3,
    "ruoss_table_5": 15 * 1 * 10 * 3,
    "ruoss_figure_2": 2 * 10 * 3,
    "ruoss_figure_3": 2 * 4 * 10 * 3,
    "ruoss_figure_4": 15 * 12 * 10 * 3,
    "confounding_table_1": 18 * 3,
    "confounding_table_2": 4 * 3,
    "confounding_table_3": 18 * 3,
    "confounding_table_b1": 15 * 7 * 3 * 3,
    "confounding_figure_b1": 15 * 7 * 3 * 3,
    "warping_table_1": 3,
    "warping_table_3": 7,
    "warping_table_a": 4 * 8 - 3,
    "warping_table_b": 4,
    "warping_figure_3": 2,
    "kazemnejad_tasks": 16 * 5 * 3,
    "kazemnejad_pcfg": 5 * 3,
    "kazemnejad_scratchpads": (4 * 7 + 2 * 6) * 5 * 3,
    "plain_and_randomized": 4 * 12 * 10 * 3,
}


@pytest.fixture(scope="module")
def all_grids():
    return {
        (n, size): make(size) for n, make in GRIDS.items() for size in SIZES
    }


def test_names(all_grids):
    for (name, size), grid in all_grids.items():
        assert (grid.name, grid.size) == (name, size)
        assert grid.statistic in ("max", "min", "mean")
        places = {(run.row, run.column) for run in grid.runs}
        # No row of a table stands in another one.
        assert len(places) <= len(grid.runs)


PAPERS = {
    "ruoss": "Ruoss et al., 2023",
    "confounding": "Confounding effects",
    "warping": "Position index warping",
    "kazemnejad": "Kazemnejad et al., 2023",
    "plain": "Six encodings of Ruoss et al., 2023",
}


def test_descriptions_name_the_paper_and_the_table(all_grids):
    for name, make in GRIDS.items():
        first = make.__doc__.splitlines()[0]
        paper, *words = name.split("_")
        assert first.startswith(PAPERS[paper]), name
        if words[0] in ("table", "figure"):
            number = re.sub(r"([a-z])(\d)", r"\1.\2", words[1]).upper()
            wanted = f"{PAPERS[paper]}, {words[0].title()} {number}:"
            assert first.startswith(wanted)
            assert all_grids[name, "small"].title.startswith(wanted)


def test_published_files_are_there(all_grids):
    for grid in all_grids.values():
        assert {*grid.published} <= {*list_published()}
        known = {
            row["model_or_encoding"]
            for name in grid.published
            for row in read_published(name)
        }
        assert {*grid.only_published.values()} <= known


def test_numbers_of_runs_are_those_of_the_papers(all_grids):
    assert {
        name: len(list_runs(all_grids[name, "paper"].runs)) for name in GRIDS
    } == SIZES_OF_PAPERS
    # About 870 runs.
    kazemnejad = (
        count
        for name, count in SIZES_OF_PAPERS.items()
        if name.startswith("kazemnejad")
    )
    assert sum(kazemnejad) == 855


def test_the_small_table_of_four_tasks(all_grids):
    runs = all_grids["plain_and_randomized", "small"].runs
    assert len(runs) == 4 * 6 * 2 * 2
    assert len({run.row for run in runs}) == 4
    assert len({run.column for run in runs}) == 12
    assert {run.flags["seed"] for run in runs} == {0, 1}


def test_both_sizes_have_the_same_rows_and_columns(all_grids):
    # Ranges of positions suit the lengths of the size.
    named_by_range = {"ruoss_figure_3", "warping_table_1", "warping_table_3"}
    named_by_range.add("plain_and_randomized")
    for name in GRIDS.keys() - named_by_range:
        paper, small = (
            [(run.row, run.column) for run in all_grids[name, size].runs]
            for size in SIZES
        )
        assert set(paper) == set(small), name


@pytest.mark.product
def test_every_run_has_valid_flags(all_grids, tmp_path):
    root = SweepRoot(tmp_path, arguments={}, directory="", environment={})
    seen = set()
    for (name, _), grid in all_grids.items():
        for run in list_runs(grid.runs):
            flags = {k: v for k, v in run.flags.items() if k not in VARIED}
            key = (run.trainer, json.dumps(flags, sort_keys=True))
            if key in seen or name in NEEDS_FILES:
                continue
            seen.add(key)
            config = root.make_config(run)
            # Not of another type, which would have another digest.
            for flag, value in run.flags.items():
                assert type(value) is type(getattr(config, flag)), flag
    assert len(seen) > 500


def test_missing_files_are_reported(all_grids, tmp_path):
    root = SweepRoot(tmp_path, arguments={}, directory="", environment={})
    with pytest.raises(ConfigError, match="cannot read data/pcfg"):
        root.make_config(all_grids["kazemnejad_pcfg", "paper"].runs[0])


def test_scores_are_entries_of_results(all_grids):
    """Lengths of the score are evaluated, and its metric is the problem's."""
    for (name, _), grid in all_grids.items():
        if name in NEEDS_FILES:
            continue
        run = grid.runs[-1]
        experiment = registered()[run.trainer]
        config = experiment.config(
            **{
                **experiment.presets[run.flags.get("preset", "small")],
                **run.flags,
            }
        )
        if grid.lengths and "test_lengths" not in run.flags:
            assert {*grid.lengths} <= {*config.evaluated_lengths}, name
        if grid.score.endswith("_by_length"):
            # Its title opens no data.
            problem = experiment.make_problem(config)
            metrics = {metric.name for metric in problem.metrics}
            metric = grid.score.removesuffix("_by_length")
            assert metric.removeprefix("generated_") in metrics, name
        else:
            averages = ("score", "generated_score", "generated_mean")
            assert grid.score in averages or grid.is_time


def test_published_settings(all_grids):
    flags = [c.flags for c in all_grids["ruoss_table_1", "paper"].runs]
    assert {f["preset"] for f in flags} == {"paper"}
    assert {f["learning_rate"] for f in flags} == {1e-4, 3e-4, 5e-4}
    assert {f["seed"] for f in flags} == set(range(10))
    counts = collections.Counter((f["task"], f["encoding"]) for f in flags)
    assert set(counts.values()) == {30}
    runs = all_grids["confounding_table_2", "paper"].runs
    for run in runs:
        if run.after:
            assert run.after.flags["encoding"] == "RoPE"
            assert run.after.flags["seed"] == run.flags["seed"]
    assert collections.Counter(c.column for c in runs) == {
        column: 3
        for column in ("not fine-tuned", "RoPE", "randomized RoPE", "ALiBi")
    }


def make_run(seed=0, after=None, **flags):
    return Run(
        trainer="algorithmic",
        flags={"encoding": "RoPE(max_wavelength=5)", "seed": seed, **flags},
        row="row",
        column="column",
        after=after,
    )


def test_the_name_of_a_run_says_what_it_is():
    run = make_run(task="copy")
    assert run.name == (
        f"algorithmic-copy-RoPE_max_wavelength=5_-0-{run.digest}"
    )
    assert run.digest == make_run(task="copy").digest
    elsewhere = dataclasses.replace(run, row="other")
    assert elsewhere.name == run.name
    names = {
        other.name
        for other in (
            run,
            make_run(task="copy", steps=3),
            make_run(task="copy", after=run),
            make_run(task="copy", after=make_run(task="copy", steps=3)),
        )
    }
    assert len(names) == 4


def test_a_run_stands_behind_the_one_it_continues_and_only_once():
    first, other = make_run(0), make_run(1)
    second = make_run(2, after=first)
    third = make_run(3, after=second)
    found = list_runs([third, second, other, make_run(1)])
    assert found == (first, second, third, other)


@pytest.mark.parametrize("count", [1, 2, 3, 50])
def test_shards_have_every_run_once_and_whole_chains(count):
    firsts = [make_run(n) for n in range(7)]
    chained = [make_run(10 + n, after=firsts[n // 2]) for n in range(6)]
    runs = list_runs([*firsts, *chained])
    shards = [take_shard(runs, n, count) for n in range(count)]
    found = [run.name for shard in shards for run in shard]
    assert sorted(found) == sorted(run.name for run in runs)
    for shard in shards:
        names = {run.name for run in shard}
        assert all(c.after is None or c.after.name in names for c in shard)


def test_further_flags_make_other_runs_unless_no_result_depends_on_them():
    first = make_run(0)
    runs = (first, make_run(1, after=first))
    changed, arguments = with_overrides(
        runs, {"steps": "7", "learning_rate": "1e-2", "checkpoint_every": "3"}
    )
    assert arguments == {"checkpoint_every": 3}
    for run in (*changed, changed[1].after):
        assert run.flags["steps"] == 7
        assert run.flags["learning_rate"] == 1e-2
    assert changed[1].after.digest == changed[0].digest != first.digest
    same, _ = with_overrides(runs, {"checkpoint_every": "3"})
    assert same == runs


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stepz": "7"}, "Did you mean steps"),
        ({"steps": "many"}, "steps takes int; got 'many'"),
        ({"workdir": "here"}, "a name in --flags cannot be 'workdir'"),
    ],
)
def test_further_flags_that_cannot_be(given, message):
    with pytest.raises(ConfigError, match=message):
        with_overrides([make_run()], given)
