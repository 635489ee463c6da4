"""Trains a decoder on WikiText-103 and tests it at longer lengths.

    python -m trainers.wikitext103 --data_dir=~/data --encoding=WarpedRoPE
    python -m trainers.wikitext103 --preset=paper --vocabulary=~/gpt2

The text must be on the machine: the first start says where to get it. With the
vocabulary of GPT-2 the result is the perplexity of a token, as published.
Without it, word pieces are learned from the training text, and the result is
the loss per word, which is not comparable with published results. Other text
and other vocabularies need `--files=any`.
"""

import dataclasses
import math

from datasets.text import (
    BytePairVocabulary,
    CorpusError,
    has_published_text,
    open_wikitext103,
)
from keras_lengen.models import TransformerDecoder, presets
from trainers.engine.problem import Metric
from trainers.errors import DataError, as_config_errors
from trainers.experiment import Experiment
from trainers.options.layers import model_arguments
from trainers.options.option import option
from trainers.text.options import WindowsConfig
from trainers.text.problem import TextProblem


@dataclasses.dataclass(frozen=True)
class Wikitext103Config(WindowsConfig):
    """Options of this trainer; every field is a flag."""

    vocabulary: str = option(
        "",
        "Directory with GPT-2's vocab.json and merges.txt (empty: word "
        "pieces that are learned from the text).",
        is_path=True,
        changes_program=True,
        names_data=True,
    )
    files: str = option(
        "published",
        "Accepted files: only the published ones, of WikiText-103 and GPT-2's "
        "vocabulary; or any text and vocabulary in files of the same names, "
        "whose losses are not comparable with published ones.",
        choices=("published", "any"),
        # The data themselves are part of a run.
        changes_result=False,
    )
    word_pieces: int = option(
        8192,
        "Largest number of learned word pieces.",
        least=300,
        most=2**20,
        changes_program=True,
        names_data=True,
    )

    @property
    def unused(self):
        """Dict from flags that have no effect beside the others to reasons."""
        if not self.vocabulary:
            return super().unused
        reason = "with --vocabulary, as no word pieces are learned"
        return {**super().unused, "word_pieces": reason}


PRESETS = {
    "small": {
        "steps": 1500,
        "dropout": 0.0,
        "evaluate_every": 500,
        "evaluation_examples": 64,
    },
    # Position index warping, section 5 and appendix B: GPT-2 base.
    "paper": {
        "num_layers": presets["gpt2"]["num_layers"],
        "num_heads": presets["gpt2"]["num_heads"],
        "model_dim": presets["gpt2"]["model_dim"],
        "batch_size": 64,
        "learning_rate": 5e-5,
        "steps": 100_000,
        "max_position": 8192,
        "train_length": "512",
        "test_lengths": "1024,2048,3072,4096",
        "evaluation_examples": 0,
        "steps_per_loop": 100,
        "checkpoint_every": 5000,
        "evaluate_every": 10_000,
    },
}


def count_tokens(config):
    """Returns the largest number of ids of the vocabulary."""
    if not config.vocabulary:
        return config.word_pieces
    with as_config_errors(CorpusError, becomes=DataError):
        return BytePairVocabulary(config.vocabulary).size


class TokenProblem(TextProblem):
    """The next token of WikiText-103, or of other text."""

    def __init__(self, config):
        super().__init__(config)
        self.hint = (
            " `python -m trainers.enwik8 --dataset=files` trains on the bytes "
            "of files of any name."
        )
        if config.files == "published":
            self.hint = (
                f" Other text or another vocabulary needs --files=any;"
                f"{self.hint}"
            )
        nats = Metric(
            "nats_per_token", "nats per token", higher_is_better=False
        )
        loss = Metric("loss", "nats per sequence", higher_is_better=False)
        self.title = (
            "wikitext103" if config.files == "published" else "other_text"
        )
        if config.vocabulary:
            first = Metric("perplexity", "of a token", higher_is_better=False)
        else:
            self.title += "_word_pieces"
            first = Metric(
                "nats_per_word", "nats per word", higher_is_better=False
            )
            self.note = (
                "The word pieces were learned here: losses are not comparable "
                "with published ones."
            )
        self.metrics = (first, nats, loss)

    def open(self):
        return open_wikitext103(
            self.config.data_dir,
            vocabulary=self.config.vocabulary or None,
            vocabulary_size=self.config.word_pieces,
            published=self.config.files == "published",
        )

    def prepare(self):
        super().prepare()
        vocabulary = self.splits["train"].vocabulary
        name = "learned"
        if self.config.vocabulary:
            name = "GPT-2" if vocabulary.is_published else "other"
        # Opening has checked what must be the published text.
        is_published = self.config.files == "published" or has_published_text(
            self.config.data_dir
        )
        text = "WikiText-103" if is_published else "other"
        self.data = {
            "text": text,
            "vocabulary": name,
            "vocabulary_size": vocabulary.size,
        }
        if "other" in (text, name):
            self.note = (
                f"Text: {text}; vocabulary: {name}. Losses are not comparable "
                "with published ones."
            )

    def convert(self, nats, tokens):
        if self.config.vocabulary:
            first = {"perplexity": math.exp(nats)}
        else:
            corpus = self.splits[self.config.split]
            first = {"nats_per_word": nats * len(corpus) / corpus.words}
        return {**first, "nats_per_token": nats, "loss": nats * tokens}


def build_model(config):
    """Builds the model of a configuration."""
    return TransformerDecoder(
        **{
            **presets["gpt2"],
            **model_arguments(config),
            "normalization": config.normalization,
            "vocabulary_size": count_tokens(config),
        }
    )


EXPERIMENT = Experiment(
    "wikitext103", Wikitext103Config, PRESETS, build_model, TokenProblem
)

if __name__ == "__main__":
    EXPERIMENT.run()
