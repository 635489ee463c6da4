"""Trains a decoder to write answers to prompts, and tests it on longer ones.

    python -m trainers.sequence_to_answer --task=copy --encoding=NoPE
    python -m trainers.sequence_to_answer --task=addition --scratchpad=all
    python -m trainers.sequence_to_answer --preset=addition

At the end the model writes answers to unseen prompts, token by token; the
results say how many are right, and how many cannot be read. The preset
`addition` trains two models on sums of numbers of up to 10 digits: with ordinal
positions, and with positions that digits of the same significance share.
"""

import functools

import tensorflow as tf

from datasets.text_tasks import batches
from datasets.text_tasks.examples import (
    evaluation_examples,
    find_seen_share,
    training_examples,
)
from datasets.text_tasks.judgement import judge
from keras_lengen.models import LoopedDecoder, TransformerDecoder
from trainers.answers.model import decoder_arguments
from trainers.answers.options import DEMONSTRATIONS, PRESETS, AnswersConfig
from trainers.answers.problem import AnswerProblem
from trainers.errors import ConfigError, as_config_errors
from trainers.experiment import Experiment


class WrittenAnswer(AnswerProblem):
    """The answer to a problem of a text task."""

    def __init__(self, config):
        super().__init__(config)
        self.title = config.task
        self.task = config.text_task
        self.vocabulary = config.vocabulary
        self.end_token = self.vocabulary.end
        self.kinds = config.evaluated_kinds

    def prepare(self):
        if self.task.digest:
            self.keep_digest([self.task])

    def inputs(self, batch):
        found, config = super().inputs(batch), self.config
        if not config.is_looped:
            return found
        # An evaluation marks the examples that it counts.
        if "used" in batch and config.evaluated_loops == "until_confident":
            most = config.find_loops(max(self.lengths))
            return {**found, "loops": most, "scored": batch["scored"]}
        loops = batch["problem_lengths"]
        if config.loops != "length":
            loops = config.find_loops(0)
        return {**found, "loops": loops}

    def prepare_model(self, model, length):
        if self.config.is_looped:
            # The cache has room for so many loops.
            model.loops = self.config.find_loops(length)

    @functools.cached_property
    def training(self):
        """The training `Examples`."""
        config = self.config
        return training_examples(
            self.task,
            config.trained_lengths,
            size=config.train_examples,
            seed=config.seed,
            fields=config.fields,
            structured=config.structured,
        )

    @functools.cached_property
    def evaluated(self):
        """Dict from lengths to their evaluated `Examples`."""
        return evaluation_examples(
            self.training,
            self.lengths,
            self.config.trained_lengths,
            self.kinds,
        )

    def training_batches(self, **steps):
        return batches.training_dataset(
            self.training,
            self.vocabulary,
            batch_size=self.config.batch_size,
            seed=self.config.seed,
            **steps,
        )

    def tokens_at(self, step):
        # A batch has problems of all trained lengths.
        return tf.constant(max(map(self.tokens, self.config.trained_lengths)))

    def fit_count(self, length, count):
        turns = len(self.evaluated[length].bins) * max(len(self.kinds), 1)
        available = self.evaluated[length].available
        count = -(-count // turns) * turns
        return count if available is None else min(count, available)

    def evaluation_batch(self, *, index, batch_size, length, padded_length):
        indices = index * batch_size + tf.range(batch_size)
        batch = batches.read_batch(
            self.evaluated.get,
            self.vocabulary,
            length,
            tf.cast(indices, tf.int64),
            padded_length,
        )
        return {**batch, "kinds": indices % max(len(self.kinds), 1)}

    def prompt(self, length, index):
        examples = self.evaluated[length]
        prompt = self.task.write_prompt(examples.problem(index))
        return self.vocabulary.tokenize(prompt)

    def answer(self, length, index):
        examples = self.evaluated[length]
        return self.task.write_answer(examples.problem(index))

    def read_prompt(self, text):
        vocabulary, task = self.vocabulary, self.task
        with as_config_errors(ValueError):
            asked = task.read_problem(text)
        prompt = text if asked is None else task.write_prompt(asked)
        tokens = vocabulary.tokenize(prompt)
        if not tokens or vocabulary.unknown in tokens:
            prompt = self.prompt(self.lengths[0], 0)
            example = task.typed or self.read(prompt)
            raise ConfigError(
                f"--prompt={text!r} is not a problem of {self.title}: write "
                f"it like {example!r}."
            )

        def describe(answer):
            if asked is None:
                return ""
            return task.describe_answer(asked, vocabulary.detokenize(answer))

        return tokens, describe

    def read(self, tokens):
        return " ".join(self.vocabulary.detokenize(tokens))

    def name_kind(self, length, index):
        return self.evaluated[length].name_kind(index) if self.kinds else ""

    def seen_share(self, length, count):
        return find_seen_share(self.training, self.evaluated[length], count)

    def judge(self, length, index, tokens):
        examples = self.evaluated[length]
        verdict = judge(examples, index, self.vocabulary, tokens.tolist())
        return verdict, examples.name_bin(index)


def build_model(config):
    """Builds the model of a configuration, the decoder of T5."""
    make = TransformerDecoder
    if config.is_looped:
        loops = max(map(config.find_loops, config.trained_lengths))
        make = functools.partial(LoopedDecoder, loops=loops)
    return make(**decoder_arguments(config, config.vocabulary.size))


EXPERIMENT = Experiment(
    "sequence_to_answer",
    AnswersConfig,
    PRESETS,
    build_model,
    WrittenAnswer,
    DEMONSTRATIONS,
)

if __name__ == "__main__":
    EXPERIMENT.run()
