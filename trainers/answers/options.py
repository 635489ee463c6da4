"""Options of the trainer of answers."""

import dataclasses
import functools
import re

from datasets.text_tasks import TEMPLATES, TEXT_TASKS, TextTaskError
from datasets.text_tasks.base import split_words
from datasets.text_tasks.examples import length_examples
from datasets.text_tasks.scratchpad import FIELDS
from datasets.text_tasks.structured_digits import UNIFORM
from datasets.text_tasks.vocabulary import WordVocabulary
from keras_lengen.layers import TOKEN_SAMPLERS
from keras_lengen.models.presets import presets
from trainers.errors import ConfigError, as_config_errors
from trainers.options.choices import described
from trainers.options.fields import LengthsConfig
from trainers.options.layers import ALL_SAMPLERS
from trainers.options.lengths import parse_lengths
from trainers.options.option import option, with_default

PRESETS = {
    "small": {"dropout": 0.0, "evaluation_examples": 100},
    # The impact of positional encoding on length generalization in
    # Transformers, appendix D.
    "paper": {
        "num_layers": presets["t5_decoder"]["num_layers"],
        "num_heads": presets["t5_decoder"]["num_heads"],
        "model_dim": presets["t5_decoder"]["model_dim"],
        "batch_size": 64,
        "learning_rate": 3e-5,
        "learning_rate_schedule": "Polynomial(end=1e-7)",
        "weight_decay": 0.05,
        "steps": 40_000,
        "warmup_steps": 2400,
        "evaluation_examples": 500,
        "generated_examples": 500,
        "evaluate_every": 2000,
        "steps_per_loop": 100,
        "checkpoint_every": 2000,
    },
    "addition": {
        "task": "marked_addition",
        "structured": 0.5,
        "kinds": "all",
        "train_examples": 0,
        "train_length": "1-10",
        "test_lengths": "20,50,100,200,500",
        "num_layers": 1,
        "num_heads": 8,
        "model_dim": 128,
        "dropout": 0.0,
        "learning_rate_schedule": "Cosine(end=1e-5)",
        "warmup_steps": 100,
        "steps": 3000,
        "evaluation_examples": 100,
        "generated_examples": 100,
    },
}

DEMONSTRATIONS = {
    "addition": {
        # Digits that belong together are far apart.
        "ordinal": {"encoding": "RoPE", "sampler": "OrdinalPositions"},
        "coupled": {
            "encoding": "ClippedBias(max_distance=3, slope=None)",
            "sampler": "CoupledPositions",
        },
    },
}
"""Variants that a preset compares if no encoding is given."""


ALL_KINDS = tuple(
    dict.fromkeys(kind for task in TEXT_TASKS.values() for kind in task.kinds)
)


@dataclasses.dataclass(frozen=True)
class AnswersConfig(LengthsConfig):
    """Options of this trainer; every field is a flag."""

    preset: str = option("small", "Set of defaults.", choices=PRESETS)
    task: str = option(
        "copy",
        "Task.",
        choices=TEXT_TASKS,
        changes_program=True,
        names_data=True,
    )
    template: str = option(
        "code",
        "Wording of the prompts: that of the published code or of the paper's "
        "appendix.",
        choices=TEMPLATES,
        changes_program=True,
    )
    scratchpad: str = option(
        "none",
        "Steps before the answer: none, all, or some of their fields, as "
        f"computation,output ({', '.join(FIELDS)}).",
        changes_program=True,
    )
    sampler: str = option(
        "",
        "Position sampler, by name or call.",
        registry={**ALL_SAMPLERS, **TOKEN_SAMPLERS},
        changes_program=True,
    )
    loops: str = option(
        "1",
        "Number of times that the blocks are applied; `length`: the length of "
        "the problem.",
        changes_program=True,
    )
    evaluated_loops: str = option(
        "same",
        "Number of times at evaluation; same: that of --loops; "
        "until_confident: the loop whose answer is most confident, up to the "
        "number of loops of the longest problem.",
        choices=("same", "until_confident"),
        changes_program=True,
    )
    data_dir: str = option(
        "data",
        "Directory of the files of --task=pcfg.",
        is_path=True,
        changes_result=False,
        names_data=True,
    )
    train_examples: int = option(
        100_000,
        "Number of training examples; 0: unlimited.",
        least=0,
        most=2**31 - 1,
    )
    structured: float = option(
        0.0,
        "Fraction of training problems with structured digits: zeros, runs, "
        "equal and complementary parts; for tasks with kinds of problems.",
        least=0,
        most=1,
    )
    kinds: str = option(
        "uniform",
        "Kinds of problems to evaluate, which take turns: uniform, all, or "
        "some of those of the task, such as equal,round "
        f"({', '.join(ALL_KINDS)}).",
    )
    generated_examples: int = option(
        50,
        "Number of answers that the trained model generates at each length, "
        "token by token; 0: none.",
        least=0,
        most=2**20,
    )
    train_length: str = with_default(LengthsConfig, "train_length", "published")
    test_lengths: str = with_default(LengthsConfig, "test_lengths", "published")
    buckets: int = with_default(LengthsConfig, "buckets", 1)

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        super().validate()
        for length in self.evaluated_lengths:
            self.total_length(length)
        self.find_loops(1)
        self.evaluated_kinds  # noqa: B018, raises
        if self.structured and not self.text_task.kinds:
            raise ConfigError(
                f"--task={self.task} has no structured problems: remove "
                "--structured."
            )
        if self.evaluated_loops == "until_confident" and not self.is_looped:
            raise ConfigError(
                "--evaluated_loops=until_confident repeats blocks: give "
                "--loops=length "
                "or a number above 1."
            )

    @property
    def unused(self):
        """Dict from flags that have no effect beside the others to reasons."""
        if self.task == "pcfg":
            return super().unused
        reason = f"with --task={self.task}, which reads no files"
        return {**super().unused, "data_dir": reason}

    @property
    def is_looped(self):
        """Whether blocks may be applied more than once."""
        return self.loops != "1"

    def find_loops(self, length):
        """Returns how often blocks are applied to a problem of a length."""
        if self.loops == "length":
            return length
        if not re.fullmatch("[1-9][0-9]{0,3}", self.loops):
            raise ConfigError(
                "--loops takes `length` or a number from 1 to 9999; got "
                f"{described(self.loops)}."
            )
        return int(self.loops)

    @property
    def fields(self):
        """Tuple of str, the fields of the scratchpad."""
        if self.scratchpad == "none":
            return ()
        if not self.text_task.step_words:
            raise ConfigError(
                f"--task={self.task} has no steps: remove --scratchpad."
            )
        if self.scratchpad == "all":
            return FIELDS
        given = self.scratchpad.split(",")
        for name in given:
            if name not in FIELDS:
                raise ConfigError(
                    f"--scratchpad takes none, all or fields of {FIELDS}; got "
                    f"{described(name)}."
                )
            if name not in _list_fields(self.text_task):
                raise ConfigError(
                    f"the steps of --task={self.task} have no {name}: remove "
                    "it from --scratchpad."
                )
        return tuple(name for name in FIELDS if name in given)

    @property
    def evaluated_kinds(self):
        """Tuple of str, kinds of evaluated problems; `()`: as in the task."""
        if self.kinds == UNIFORM:
            return ()
        known = self.text_task.kinds
        if not known:
            raise ConfigError(
                f"--task={self.task} has no kinds of problems: remove --kinds."
            )
        given = known if self.kinds == "all" else self.kinds.split(",")
        for kind in given:
            if kind not in known:
                raise ConfigError(
                    f"--kinds takes all or kinds of --task={self.task}, which "
                    f"are {', '.join(known)}; got {described(kind)}."
                )
        return tuple(kind for kind in known if kind in given)

    @property
    def text_task(self):
        """The `TextTask`."""
        more = {"directory": self.data_dir} if self.task == "pcfg" else {}
        return _make_task(self.task, template=self.template, **more)

    @property
    def vocabulary(self):
        """The `WordVocabulary` of the task and its scratchpad."""
        return WordVocabulary(self.text_task, has_scratchpad=bool(self.fields))

    @property
    def token_meanings(self):
        """Ids of the task's digits, and which words belong together."""
        vocabulary, alignment = self.vocabulary, self.text_task.alignment
        known = {"digits": vocabulary.digits} if vocabulary.digits else {}
        return (
            known
            if alignment is None
            else {**known, **vocabulary.align(alignment)}
        )

    @property
    def trained_lengths(self):
        """Lengths that training draws from."""
        return self._parse("train_length", "trained_lengths")

    @property
    def evaluated_lengths(self):
        """The same, with those that are only tested."""
        tested = self._parse("test_lengths", "tested_lengths")
        return tuple(sorted({*self.trained_lengths, *tested}))

    def _parse(self, name, published):
        text = getattr(self, name)
        if text != "published":
            return parse_lengths(f"--{name}", text)
        with as_config_errors(TextTaskError):
            found = tuple(getattr(self.text_task, published))
        if not found:
            raise ConfigError(
                f"--{name}=published: {self.task} has no problems of such "
                "lengths: look at the files in --data_dir."
            )
        return found

    def total_length(self, length):
        """Returns the most tokens of a prompt with its answer and its end."""
        return _count_longest(self.text_task, length, self.fields)[0]

    def longest_answer(self, length):
        """Returns the largest number of tokens of an answer with its end."""
        return _count_longest(self.text_task, length, self.fields)[1]


@functools.cache
def _make_task(name, **fields):
    with as_config_errors(ValueError):
        return TEXT_TASKS[name](**fields)


@functools.cache
def _list_fields(task):
    """Returns the fields that the steps of a task have."""
    problem = task.longest(task.bins_at(task.trained_lengths[0])[0])
    found = {
        name
        for step in task.steps(problem)
        for name, value in step._asdict().items()
        if value is not None
    }
    return [name for name in FIELDS if name in found]


@functools.cache
def _count_longest(task, length, fields):
    """Returns the most tokens of an example and of its answer, with its end.

    Prompts are padded to the longest one, and answers follow the padding.
    """
    with as_config_errors(TextTaskError, ValueError):
        if any(task.count(place) == 0 for place in task.bins_at(length)):
            raise ConfigError(
                f"{type(task).__name__} has no problem of length {length}: "
                "choose other lengths."
            )
        pairs = length_examples(task, length, fields=fields).longest()
    counts = [tuple(len(split_words(text)) for text in pair) for pair in pairs]
    prompt, answer = map(max, zip(*counts, strict=True))
    return prompt + answer + 1, answer + 1
