"""The Impact of Positional Encoding on Length Generalization in Transformers.

The paper has figures and no tables. The size `paper` is the setting of
appendix D, with the three seeds of its code. `kazemnejad_tasks` has the runs
without scratchpads, `kazemnejad_scratchpads` those with one, in all formats.
The runs on PCFG are a grid of their own: they need its files in `data/pcfg`.

Reference: Kazemnejad et al., 2023. https://arxiv.org/abs/2305.19466
"""

from datasets.text_tasks.scratchpad import FIELDS
from trainers.sweeps.grids.grid import Grid, cross, name_encodings

TITLE = "Kazemnejad et al., 2023"
SEEDS = {"paper": (256788, 234054, 146317), "small": (0,)}

ENCODINGS = {
    **name_encodings("NoPE", "T5Bias", "ALiBi"),
    # As in the paper's code.
    "RoPE": {"encoding": "RoPE(rotary_fraction=0.25)"},
    **name_encodings("SinusoidalEncoding"),
}
TASKS = (
    *("copy", "copy_twice", "copy_repeated", "copy_repeated_twice"),
    *("copy_replace", "reverse", "reverse_twice", "reverse_and_back"),
    *("addition", "polynomial", "sort", "sort_multi_digit", "summation"),
    *("parity", "lego", "scan"),
)
WITH_STEPS = {
    "addition": FIELDS,
    "polynomial": FIELDS,
    "summation": FIELDS,
    "parity": FIELDS,
    # Their steps have no variable.
    "sort": tuple(name for name in FIELDS if name != "variable"),
    "lego": tuple(name for name in FIELDS if name != "variable"),
}
"""Dict from the tasks with scratchpads to the fields of their steps."""

COMMON = {
    "paper": {"preset": "paper"},
    "small": {
        "num_layers": 2,
        "num_heads": 4,
        "batch_size": 32,
        "steps": 1500,
        "generated_examples": 20,
    },
}
SCORE = {"score": "generated_score", "unit": "%", "statistic": "mean"}


def make_tasks(size):
    """Kazemnejad et al., 2023: exact match on 16 tasks, no scratchpad."""
    return Grid(
        name="kazemnejad_tasks",
        title=f"{TITLE}: exact match on longer problems",
        size=size,
        runs=_make_runs({task: {"task": task} for task in TASKS}, size),
        **SCORE,
    )


def make_pcfg(size):
    """Kazemnejad et al., 2023: exact match on PCFG."""
    steps = {"paper": 100_000, "small": 1500}[size]
    flags = {"task": "pcfg", "data_dir": "data/pcfg", "steps": steps}
    if size == "paper":
        # 6% of the steps.
        flags["warmup_steps"] = 6000
    return Grid(
        name="kazemnejad_pcfg",
        title=f"{TITLE}: exact match on longer problems of PCFG",
        size=size,
        runs=_make_runs({"pcfg": flags}, size),
        **SCORE,
    )


def make_scratchpads(size):
    """Kazemnejad et al., 2023: exact match with each format of scratchpad."""
    rows = {}
    for task, fields in WITH_STEPS.items():
        formats = {
            "all": "all",
            "computation and output": "computation,output",
            **{
                f"without {left_out}": ",".join(
                    name for name in fields if name != left_out
                )
                for left_out in fields
            },
        }
        for name, text in formats.items():
            rows[f"{task}, {name}"] = {"task": task, "scratchpad": text}
    return Grid(
        name="kazemnejad_scratchpads",
        title=f"{TITLE}: exact match with scratchpads of several formats",
        size=size,
        runs=_make_runs(rows, size),
        **SCORE,
    )


def _make_runs(rows, size):
    return cross(
        "sequence_to_answer", COMMON[size], rows, ENCODINGS, SEEDS[size]
    )


GRIDS = {
    "kazemnejad_tasks": make_tasks,
    "kazemnejad_pcfg": make_pcfg,
    "kazemnejad_scratchpads": make_scratchpads,
}
