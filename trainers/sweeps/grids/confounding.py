"""The Confounding Effects of Length Generalization With Randomized Encodings.

The size `paper` is the setting of section 4 and appendices A and B: the
smallest loss of three seeds, or the best accuracy of three seeds and three
learning rates. The size `small` reads other data, which every machine has: the
source code of Python in place of enwik8, and handwritten digits in place of
ImageNet.
"""

from trainers.sweeps.grids.chomsky import SCORE, make_runs
from trainers.sweeps.grids.grid import Grid, Run, name_encodings

SEEDS = {"paper": 3, "small": 1}

ENCODINGS = {
    "NoPE": ("plain",),
    **dict.fromkeys(
        (
            *("SinusoidalEncoding", "ALiBi", "RelativeEncoding", "RoPE"),
            *("LearnedEncoding", "PowerKERPLE", "LogKERPLE", "Sandwich"),
        ),
        ("plain", "randomized"),
    ),
    # It draws positions itself.
    "SHAPE": ("plain",),
}
"""Dict from encodings to the forms that Tables 1 and 3 have."""

TEXT = {
    "paper": {"preset": "paper"},
    "small": {"dataset": "python_source", "num_layers": 2, "steps": 1500},
}
IMAGES = {
    "paper": {"preset": "paper"},
    "small": {"dataset": "digits", "steps": 1000, "evaluate_every": 0},
}
FINETUNED = {
    "RoPE": "RoPE",
    "randomized RoPE": "RandomizedRoPE",
    "ALiBi": "ALiBi",
}
LOSS = {
    "score": "loss_by_length",
    "statistic": "min",
    "higher_is_better": False,
}
TITLE = "Confounding effects"


def make_table_1(size):
    """Confounding effects, Table 1: loss on enwik8."""
    return Grid(
        name="confounding_table_1",
        title=f"{TITLE}, Table 1: loss on text",
        size=size,
        runs=_make_loss_runs("enwik8", TEXT[size], size),
        unit="nats per sequence",
        lengths=(256, 1024),
        published=_name_published("confounding_table_1", size),
        match=_match_form,
        **LOSS,
    )


def make_table_2(size):
    """Confounding effects, Table 2: loss on enwik8 after fine-tuning.

    The runs continue those with RoPE. The paper does not say how the second
    phase is optimized: here it has the steps and the learning rate of the
    first, and begins with a new optimizer.
    """
    runs = []
    for seed in range(SEEDS[size]):
        flags = {**TEXT[size], "encoding": "RoPE", "seed": seed}
        place = {"trainer": "enwik8", "row": "RoPE"}
        trained = Run(flags=flags, column="not fine-tuned", **place)
        runs.append(trained)
        runs += [
            Run(
                flags={**flags, "encoding": encoding},
                column=column,
                after=trained,
                **place,
            )
            for column, encoding in FINETUNED.items()
        ]
    return Grid(
        name="confounding_table_2",
        title=f"{TITLE}, Table 2: loss on text after fine-tuning",
        size=size,
        runs=tuple(runs),
        unit="nats per sequence",
        lengths=(256, 1024),
        published=_name_published("confounding_table_2", size),
        match=_match_second_phase,
        **LOSS,
    )


def make_table_3(size):
    """Confounding effects, Table 3: loss on ImageNet."""
    # The small images are 8 x 8 and 16 x 16 pixels with a delimiter a row.
    lengths = {"paper": (506, 2025), "small": (72, 272)}
    return Grid(
        name="confounding_table_3",
        title=f"{TITLE}, Table 3: loss on images",
        size=size,
        runs=_make_loss_runs("imagenet", IMAGES[size], size),
        unit="nats",
        lengths=lengths[size],
        published=_name_published("confounding_table_3", size),
        match=_match_form,
        **LOSS,
    )


def make_table_b1(size):
    """Confounding effects, Table B.1: accuracy of 7 encodings on 15 tasks."""
    return Grid(
        name="confounding_table_b1",
        title=f"{TITLE}, Table B.1: accuracy on algorithmic tasks",
        size=size,
        runs=_make_task_runs(size),
        published=("confounding_table_b1",),
        only_published={"best of Ruoss et al., 2023": "BestOfRuoss2023"},
        **SCORE,
    )


def make_figure_b1(size):
    """Confounding effects, Figure B.1: accuracy at each length."""
    lengths = {"paper": range(50, 501, 50), "small": range(25, 101, 25)}
    return Grid(
        name="confounding_figure_b1",
        title=f"{TITLE}, Figure B.1: accuracy at each length",
        size=size,
        runs=_make_task_runs(size),
        lengths=tuple(lengths[size]),
        **{**SCORE, "score": "accuracy_by_length"},
    )


def _make_loss_runs(trainer, common, size):
    return tuple(
        Run(
            trainer=trainer,
            flags={
                **common,
                "encoding": _name_form(encoding, form),
                "seed": seed,
            },
            row=encoding,
            column=form,
        )
        for seed in range(SEEDS[size])
        for encoding, forms in ENCODINGS.items()
        for form in forms
    )


def _make_task_runs(size):
    columns = name_encodings(
        *("PowerKERPLE", "LogKERPLE", "Sandwich", "SHAPE"),
        *("RandomizedPowerKERPLE", "RandomizedLogKERPLE"),
        "RandomizedSandwich",
    )
    return make_runs(columns, size, seeds=SEEDS[size])


def _name_form(encoding, form):
    return f"Randomized{encoding}" if form == "randomized" else encoding


def _name_published(name, size):
    # Losses on other data are not comparable.
    return (name,) if size == "paper" else ()


def _match_form(row, column):
    randomized = {"plain": "no", "randomized": "yes"}
    return {
        "model_or_encoding": row,
        "randomized": randomized.get(column, column),
    }


def _match_second_phase(row, column):
    trained_on = column != "not fine-tuned"
    return {"note": f"fine-tuned with {column}" if trained_on else column}


GRIDS = {
    "confounding_table_1": make_table_1,
    "confounding_table_2": make_table_2,
    "confounding_table_3": make_table_3,
    "confounding_table_b1": make_table_b1,
    "confounding_figure_b1": make_figure_b1,
}
