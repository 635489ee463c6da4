"""Options of the trainer of labelled sequences."""

import dataclasses
import functools
import os
import pathlib

from datasets.labelled import BAD_LINES, KINDS, TOKENS, LabelledError
from datasets.labelled.columns import Columns
from datasets.labelled.rows import TFDS, call_source, open_source
from datasets.labelled.split import LabelledData, choose_lengths
from datasets.labelled.store import open_store
from trainers.errors import ConfigError, DataError, as_config_errors
from trainers.options.fields import LengthsConfig
from trainers.options.lengths import parse_lengths
from trainers.options.option import option, with_default
from trainers.options.own_classes import find_function, split_name

PRESETS = {
    "small": {"dropout": 0.0, "batch_size": 64},
    "paper": {
        # Ruoss et al., 2023, section 4.
        "num_layers": 5,
        "steps": 100_000,
        "evaluation_examples": 1000,
        "evaluate_every": 10_000,
        "checkpoint_every": 10_000,
    },
}


@dataclasses.dataclass(frozen=True)
class ExamplesConfig(LengthsConfig):
    """Options of this trainer; every field is a flag."""

    data: str = option(
        "",
        "Examples to train on: a file (.jsonl, .json, .csv, .tsv, also with "
        ".gz; .parquet), tfds:NAME or tfds:NAME:SPLIT of TensorFlow Datasets, "
        "or a function that yields dicts, as path/file.py:function.",
        changes_result=False,
        names_data=True,
    )
    test_data: str = option(
        "",
        "Other examples to test on, in the same form (empty: the longer ones "
        "of --data).",
        changes_result=False,
        names_data=True,
    )
    input: str = option(
        "",
        "Column of the input (empty: `input`, or the first of two columns).",
    )
    target: str = option(
        "",
        "Column of the target (empty: `target`, or the second of two columns).",
    )
    length: str = option(
        "",
        "Column of the length, a number, or a text whose tokens are counted "
        "(empty: the number of tokens of the input).",
    )
    kind: str = option(
        "auto",
        "What the target is: the label of a sequence, an answer to write, or "
        "a list of tags, one for each token; auto: found from the first "
        "examples.",
        choices=("auto", *KINDS),
        changes_program=True,
    )
    tokens: str = option(
        "auto",
        f"Tokens: {', '.join(TOKENS)}, or the file of a tokenizer of the "
        "package tokenizers, as tokenizer.json; auto: words if inputs are "
        "lists, otherwise characters.",
        changes_program=True,
    )
    vocabulary_size: int = option(
        32_768,
        "Largest number of characters or words of the vocabulary, the most "
        "frequent ones of the training examples.",
        most=2**20,
        changes_program=True,
    )
    bad_lines: str = option(
        "error",
        "Whether a line without an input or a target, or of another form, is "
        "an error or skipped.",
        choices=BAD_LINES,
    )
    model: str = option(
        "auto",
        "encoder: attention in both directions; decoder: causal attention; "
        "auto: decoder for answers, encoder for labels and tags.",
        choices=("auto", "encoder", "decoder"),
        changes_program=True,
    )
    data_dir: str = option(
        "data",
        "Directory where the tokens of the examples are kept, and where a "
        "file of --data is found that is not at its place any more.",
        is_path=True,
        changes_result=False,
        names_data=True,
    )
    generated_examples: int = option(
        50,
        "Number of answers that the trained model generates at each length, "
        "token by token; 0: none.",
        least=0,
        most=2**20,
    )
    train_length: str = with_default(LengthsConfig, "train_length", "auto")
    test_lengths: str = with_default(LengthsConfig, "test_lengths", "auto")
    buckets: int = with_default(LengthsConfig, "buckets", 1)

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        if not self.data:
            raise ConfigError(
                "--data is missing: name a file of examples, such as "
                "--data=examples.jsonl."
            )
        super().validate()
        if self.model == "encoder" and self.resolved.kind == "answer":
            raise ConfigError(
                "--model=encoder writes no answers: remove it, or give "
                "--kind=label."
            )

    @property
    def resolved(self):
        """The configuration with what the data say in place of `auto`."""
        known = (self.kind, self.tokens, self.train_length, self.test_lengths)
        if "auto" not in known:
            return self
        training, testing = self.stores
        trained, tested = self.train_length, self.test_lengths
        if "auto" in (trained, tested):
            longest = None
            if trained != "auto":
                longest = max(parse_lengths("--train_length", trained))
            chosen = choose_lengths(training, testing, longest)
            texts = [",".join(map(str, lengths)) for lengths in chosen]
            trained = texts[0] if trained == "auto" else trained
            # Without longer examples, those held out are tested.
            tested = (texts[1] or texts[0]) if tested == "auto" else tested
        return dataclasses.replace(
            self,
            kind=training.kind,
            tokens=training.tokenizer,
            train_length=trained,
            test_lengths=tested,
        )

    @property
    def is_decoder(self):
        """Whether attention is causal."""
        if self.model == "auto":
            return self.resolved.kind == "answer"
        return self.model == "decoder"

    @property
    def trained_lengths(self):
        return super(ExamplesConfig, self.resolved).trained_lengths

    @property
    def evaluated_lengths(self):
        return super(ExamplesConfig, self.resolved).evaluated_lengths

    @property
    def stores(self):
        """The `Store` of training and that of other examples, or `None`."""
        first = _open(self.data, self, "--data", self.kind, self.tokens)
        if not self.test_data:
            return first, None
        second = _open(
            self.test_data, self, "--test_data", first.kind, first.tokenizer
        )
        return first, second

    @property
    def examples(self):
        """The `LabelledData`."""
        return _split(
            self.stores,
            self.trained_lengths,
            self.evaluated_lengths,
            self.vocabulary_size,
        )

    def total_length(self, length):
        """Returns the most tokens of an input with its target."""
        inputs, answer = self.examples.count_tokens(length)
        # With [ANSWER] and, after an answer, its end.
        added = {"tags": 0, "label": 1, "answer": 2}[self.resolved.kind]
        return inputs + answer + added

    def longest_answer(self, length):
        """Returns the largest number of tokens of an answer with its end."""
        return self.examples.count_tokens(length)[1] + 1


_OPENED: dict = {}
"""Stores that are open, by what they were opened with."""


def _open(text, config, flag, kind, tokens):
    """Opens the `Store` of a flag; one that is open already is returned."""
    with as_config_errors(LabelledError, becomes=DataError):
        source = _find_source(flag, text, config.data_dir)
        known = {
            "directory": pathlib.Path(config.data_dir, "examples"),
            "columns": Columns(config.input, config.target, config.length),
            "bad_lines": config.bad_lines,
        }

        def name(kind, tokens):
            return source, *known.values(), kind, tokens

        if name(kind, tokens) not in _OPENED:
            store = open_store(
                source,
                kind=kind,
                tokens=tokens,
                report=functools.partial(print, flush=True),
                **known,
            )
            # Also where the configuration says what `auto` stands for.
            for chosen in ((kind, tokens), (store.kind, store.tokenizer)):
                _OPENED[name(*chosen)] = store
        return _OPENED[name(kind, tokens)]


def _find_source(flag, text, directory):
    if "://" in text:
        raise ConfigError(
            f"{flag} takes a file: download {text}, and give its path."
        )
    module, _ = split_name(text)
    if module and not text.startswith(TFDS) and not os.path.exists(text):
        return _call_once(flag, text)
    # `Path.is_file` raises for a name that is too long.
    moved = os.path.join(directory, os.path.basename(text))
    if not os.path.exists(text) and os.path.isfile(moved):
        return open_source(moved)
    return open_source(text)


@functools.cache
def _call_once(flag, text):
    return call_source(text, find_function(flag, text))


@functools.lru_cache(maxsize=8)
def _split(stores, trained, evaluated, vocabulary_size):
    with as_config_errors(LabelledError, becomes=DataError):
        return LabelledData(
            *stores,
            trained=trained,
            evaluated=evaluated,
            vocabulary_size=vocabulary_size,
        )
