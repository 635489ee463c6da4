"""Grids: their runs have valid flags, and are those of the papers."""

import dataclasses
import json

import pytest

from tests.trainers.sweeps.files import make_run, open_root
from trainers.errors import ConfigError
from trainers.records.opened_run import registered
from trainers.reports.published import read_published
from trainers.sweeps.grids import GRIDS, SIZES, open_grid
from trainers.sweeps.grids.grid import list_runs, take_shard
from trainers.sweeps.overrides import with_overrides
from trainers.sweeps.root import VARIED

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
    # With PCFG 855, "about 870 runs".
    "kazemnejad_tasks": 16 * 5 * 3,
    "kazemnejad_pcfg": 5 * 3,
    "kazemnejad_scratchpads": (4 * 7 + 2 * 6) * 5 * 3,
    "plain_and_randomized": 4 * 12 * 10 * 3,
}
MADE = [make(size) for make in GRIDS.values() for size in SIZES]


def test_grids_have_as_many_runs_as_the_papers():
    found = {
        name: len(list_runs(make("paper").runs)) for name, make in GRIDS.items()
    }
    assert found == SIZES_OF_PAPERS


# All flags of all grids are checked for half a minute.
@pytest.mark.parametrize(
    "stride", [pytest.param(1, marks=pytest.mark.product), 199]
)
def test_runs_have_valid_flags(stride, tmp_path):
    root, different = open_root(tmp_path), {}
    for grid in MADE:
        for run in list_runs(grid.runs):
            flags = {k: v for k, v in run.flags.items() if k not in VARIED}
            key = run.trainer, json.dumps(flags, sort_keys=True)
            # Its files are not there.
            if flags.get("task") != "pcfg":
                different.setdefault(key, run)
    assert len(different) > 500
    for run in [*different.values()][::stride]:
        config = root.make_config(run)
        # Not of another type, which would have another digest.
        for flag, value in run.flags.items():
            assert type(value) is type(getattr(config, flag)), flag


@pytest.mark.parametrize(
    "grid", MADE, ids=lambda grid: f"{grid.name}-{grid.size}"
)
def test_scores_and_published_numbers_are_there(grid):
    known = {
        row["model_or_encoding"]
        for file in grid.published
        for row in read_published(file)
    }
    assert {*grid.only_published.values()} <= known
    run = grid.runs[-1]
    experiment = registered()[run.trainer]
    preset = experiment.presets[run.flags.get("preset", "small")]
    config = experiment.config(**{**preset, **run.flags})
    if grid.lengths and "test_lengths" not in run.flags:
        assert {*grid.lengths} <= {*config.evaluated_lengths}
    if not grid.score.endswith("_by_length"):
        averages = ("score", "generated_score", "generated_mean")
        assert grid.score in averages or grid.is_time
    elif run.flags.get("task") != "pcfg":
        metric = grid.score.removesuffix("_by_length")
        # Its title opens no data.
        metrics = experiment.make_problem(config).metrics
        names = {one.name for one in metrics}
        assert metric.removeprefix("generated_") in names


def test_the_name_of_a_run_says_what_it_is():
    flags = {"task": "copy", "encoding": "RoPE(max_wavelength=5)"}
    run = dataclasses.replace(make_run(), flags={**flags, "seed": 0})
    assert run.name == f"algorithmic-copy-RoPE_max_wavelength=5_-0-{run.digest}"
    assert dataclasses.replace(run, row="other").name == run.name
    assert dataclasses.replace(run, after=run).name != run.name


@pytest.mark.parametrize("count", [1, 3, 50])
def test_shards_have_every_run_once_and_whole_chains(count):
    firsts = [make_run(n) for n in range(7)]
    chained = [make_run(10 + n, after=firsts[n // 2]) for n in range(6)]
    third = make_run(20, after=chained[3])
    runs = list_runs([third, *chained, *firsts])
    # Each stands behind the one that it continues.
    assert runs[:3] == (firsts[1], chained[3], third)
    shards = [take_shard(runs, n, count) for n in range(count)]
    found = [run.name for shard in shards for run in shard]
    assert sorted(found) == sorted(run.name for run in runs)
    assert all(shards[:7])
    for shard in shards:
        names = {run.name for run in shard}
        assert {run.first.name for run in shard} <= names


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


def test_further_flags_that_cannot_be():
    for given, message in (
        ({"steps": "many"}, "steps takes int; got 'many'"),
        ({"workdir": "here"}, "a name in --flags cannot be 'workdir'"),
    ):
        with pytest.raises(ConfigError, match=message):
            with_overrides([make_run()], given)


def test_a_grid_of_ones_own(tmp_path):
    file = tmp_path / "mine.py"
    flags = {"trainer": "algorithmic", "encoding": "RoPE", "steps": 2}
    file.write_text(
        f"RUNS = [{{**{flags}, 'seed': seed}} for seed in range(3)]\n"
        "def first():\n    yield RUNS[0]\n"
    )
    grid, first = open_grid(f"{file}", "small"), open_grid(f"{file}:first", "")
    assert [run.flags["seed"] for run in grid.runs] == [0, 1, 2]
    assert {run.column for run in grid.runs} == {"RoPE"}
    assert first.runs == grid.runs[:1]
    assert (grid.name_of_size, first.name_of_size) == ("mine", "mine-first")


def test_files_that_are_no_grids(tmp_path):
    for number, (runs, message) in enumerate(
        (
            ("[]", "RUNS of .*own_0.py has no runs"),
            ("{'trainer': 'enwik8'}", "must be a list of dicts of flags, or"),
            ("[{'steps': 2}]", "run 0 of .* has the key `trainer`"),
            ("[{'trainer': 'enwik9'}]", "the trainer of run 0 .* mean enwik8"),
            ("[{'trainer': 'enwik8', 'step': 2}]", "a flag .* mean steps"),
            ("[{'trainer': 'enwik8', 'workdir': ''}]", "cannot be 'workdir'"),
            ("[{'trainer': 'enwik8', 'seed': 1j}]", "seed of run 0 .* or bool"),
            ("[{'trainer': 'enwik8'}]", "run 0 of .* needs an encoding"),
            ("lambda: 1 / 0", "RUNS of .* failed: ZeroDivisionError: div"),
            ("[][0]", "cannot be imported: IndexError: list index"),
        )
    ):
        file = tmp_path / f"own_{number}.py"
        file.write_text(f"RUNS = {runs}")
        with pytest.raises(ConfigError, match=message):
            open_grid(str(file), "small")
