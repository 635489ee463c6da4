"""Problems of labelled sequences: labels, tags and answers."""

import functools

import numpy as np
from keras import ops

from datasets.labelled import batches, floors
from datasets.labelled.tokens import ANSWER
from datasets.labelled.writer import split_tagged
from trainers.answers.problem import AnswerProblem
from trainers.engine.losses import (
    cross_entropies,
    sum_answer_metrics,
    sum_counted,
)
from trainers.engine.problem import Metric, Problem
from trainers.errors import ConfigError

SHOWN = 5
"""Largest number of classes that a message names."""


class LabelledProblem(Problem):
    """What problems of labelled sequences have in common.

    A batch is in the format of `datasets.labelled.batches.read_batch`.
    """

    def __init__(self, config):
        super().__init__(config)
        # Examples of all lengths are trained on, up to the longest.
        self.trained_lengths = tuple(range(1, self.longest_trained + 1))
        name = config.data.rpartition("/")[2]
        self.title = name.replace(":", "_")

    @functools.cached_property
    def examples(self):
        """The `LabelledData`, those of the start whatever its file becomes."""
        return self.config.examples

    def prepare(self):
        found = self.examples
        self.data_digest = found.digest
        self.lengths = tuple(found.evaluated)
        self.data = found.describe()
        for line in found.summarize():
            print(line)
        self.note = " ".join(found.describe_problems())

    def describe_length(self, length):
        ends = self.config.evaluated_lengths
        before = [end for end in ends if end < length]
        first = max(before, default=0) + 1
        return str(length) if first == length else f"{first}-{length}"

    def training_batches(self, **steps):
        return batches.training_dataset(
            self.examples,
            batch_size=self.config.batch_size,
            seed=self.config.seed,
            **steps,
        )

    def tokens_at(self, step):
        # A batch has examples of all trained lengths.
        return ops.convert_to_tensor(self.tokens(self.longest_trained), "int32")

    def fit_count(self, length, count):
        return min(len(self.examples.evaluated[length]), count)

    def evaluation_examples(self, length):
        return self.fit_count(length, self.config.evaluation_examples)

    def evaluation_batch(self, **which):
        return batches.evaluation_batch(self.examples, **which)

    @functools.cached_property
    def vocabulary(self):
        """The `Vocabulary`."""
        return self.examples.vocabulary

    def names(self):
        found = {"tokens": self.vocabulary.words}
        classes = self.examples.classes
        return {**found, "classes": classes} if classes else found


class ClassProblem(LabelledProblem):
    """The label of a sequence, or a tag for each of its tokens."""

    metrics = (
        Metric("accuracy"),
        Metric("exact_match"),
        Metric("loss", "nats", higher_is_better=False),
    )

    examples_sum = 3

    @property
    def floor_labels(self):
        if self.config.resolved.kind == "tags":
            named = {"floor": "most frequent tag of each token"}
            return {**named, "most_frequent": "most frequent tag"}
        return {
            "floor": "naive Bayes on counts of tokens",
            "most_frequent": "most frequent label",
        }

    def loss(self, outputs, batch):
        losses = cross_entropies(outputs, batch["targets"])
        return sum_counted(losses, batch["scored"])

    def sums(self, outputs, batch):
        # All targets that have a loss are scored.
        batch = {**batch, "answer": batch["scored"]}
        return sum_answer_metrics(outputs, batch)

    def floors(self):
        find = floors.label_floors
        if self.config.resolved.kind == "tags":
            find = floors.tag_floors
        return find(self.examples, self.config.evaluation_examples)

    def classify(self, model, text):
        """Returns lines that say how a model classifies a text.

        Args:
            model: Built Keras model.
            text: str.

        Raises:
            ConfigError: If the text has no tokens.
        """
        if self.config.resolved.kind == "tags":
            text = split_tagged(text, self.vocabulary.tokenizer)
        tokens = np.array(self.vocabulary.tokenize(text), np.int32)
        if not len(tokens):
            raise ConfigError("--prompt is empty: give a text to classify.")
        kind, classes = self.config.resolved.kind, self.examples.classes
        empty = np.zeros(len(tokens) if kind == "tags" else 1, np.int32)
        token_ids, _ = batches.arrange(kind, tokens, empty)
        outputs = model(token_ids[None])[0, -len(empty) :]
        shares = ops.convert_to_numpy(ops.softmax(outputs))
        if kind == "tags":
            found = zip(tokens, shares.argmax(axis=-1), strict=True)
            pieces = self.vocabulary.words
            return [f"{pieces[token]}\t{classes[tag]}" for token, tag in found]
        best = np.argsort(-shares[0])[:SHOWN]
        return [f"{classes[n]}\t{shares[0, n]:.3f}" for n in best]


class WrittenAnswer(LabelledProblem, AnswerProblem):
    """A text that follows the input."""

    @property
    def end_token(self):
        return self.vocabulary.end

    def floors(self):
        return floors.answer_floor(
            self.examples, self.config.evaluation_examples
        )

    def _example(self, length, index):
        return self.examples.read(self.examples.evaluated[length][index])

    def prompt(self, length, index):
        return [*self._example(length, index)[0].tolist(), ANSWER]

    def answer(self, length, index):
        return self.vocabulary.detokenize(self._example(length, index)[1])

    def read_prompt(self, text):
        tokens = self.vocabulary.tokenize(text)
        if not tokens:
            raise ConfigError("--prompt is empty: give a text to answer.")
        return [*tokens, ANSWER], lambda answer: ""

    def read(self, tokens):
        tokens = [int(token) for token in tokens]
        if ANSWER not in tokens:
            return self.vocabulary.detokenize(tokens)
        place = tokens.index(ANSWER)
        parts = tokens[:place], tokens[place + 1 :]
        return " -> ".join(map(self.vocabulary.detokenize, parts))

    def seen_share(self, length, count):
        return self.examples.seen_share(length, count)

    def judge(self, length, index, tokens):
        tokens = tokens.tolist()
        if self.end_token not in tokens:
            return "unfinished", self.describe_length(length)
        written = tokens[: tokens.index(self.end_token)]
        is_right = written == self._example(length, index)[1].tolist()
        return "right" if is_right else "wrong", self.describe_length(length)
