"""Grids: their runs have valid flags, and are those of the papers."""

import json
import re

import pytest

from tests.trainers.sweeps.files import make_run, open_root
from trainers.errors import ConfigError
from trainers.reports.published import list_published, read_published
from trainers.sweeps.grids import GRIDS, SIZES
from trainers.sweeps.grids.grid import list_runs, take_shard
from trainers.sweeps.overrides import with_overrides
from trainers.sweeps.root import VARIED

PAPERS = {
    "ruoss": "Ruoss et al., 2023",
    "confounding": "Confounding effects",
    "warping": "Position index warping",
    "kazemnejad": "Kazemnejad et al., 2023",
    "plain": "Six encodings of Ruoss et al., 2023",
}
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
# Their columns are ranges of positions, which suit the lengths of the size.
NAMED_BY_RANGE = {
    *("ruoss_figure_3", "warping_table_1", "warping_table_3"),
    "plain_and_randomized",
}


@pytest.fixture(scope="module")
def made():
    """A dict from the names of grids to those of both sizes."""
    return {
        name: {size: make(size) for size in SIZES}
        for name, make in GRIDS.items()
    }


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_is_what_its_name_says(name, made):
    paper, *words = name.split("_")
    title = PAPERS[paper]
    for size, grid in made[name].items():
        assert (grid.name, grid.size) == (name, size)
        assert grid.statistic in ("max", "min", "mean")
        if words[0] in ("table", "figure"):
            number = re.sub(r"([a-z])(\d)", r"\1.\2", words[1]).upper()
            title = f"{PAPERS[paper]}, {words[0].title()} {number}:"
            assert grid.title.startswith(title)
        assert {*grid.published} <= {*list_published()}
        known = {
            row["model_or_encoding"]
            for file in grid.published
            for row in read_published(file)
        }
        assert {*grid.only_published.values()} <= known
    assert GRIDS[name].__doc__.splitlines()[0].startswith(title)
    assert len(list_runs(made[name]["paper"].runs)) == SIZES_OF_PAPERS[name]
    if name not in NAMED_BY_RANGE:
        large, small = (
            {(run.row, run.column) for run in made[name][size].runs}
            for size in SIZES
        )
        assert large == small


# All flags of all grids are checked for half a minute.
@pytest.mark.parametrize(
    "stride", [pytest.param(1, marks=pytest.mark.product), 199]
)
def test_runs_have_valid_flags(stride, made, tmp_path):
    root, different = open_root(tmp_path), {}
    for sizes in made.values():
        for grid in sizes.values():
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
    assert all(shards[:7])
    for shard in shards:
        names = {run.name for run in shard}
        assert all(
            run.after is None or run.after.name in names for run in shard
        )


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
        ({"initialize_from": "x"}, "a name in --flags cannot be 'initialize"),
    ],
)
def test_further_flags_that_cannot_be(given, message):
    with pytest.raises(ConfigError, match=message):
        with_overrides([make_run()], given)
