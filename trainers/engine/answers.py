"""Problems of writing the answer to a prompt."""

import abc
import collections
import math

import numpy as np
from keras import ops

from trainers.engine.losses import cross_entropies, sum_counted
from trainers.engine.problem import Metric, Problem

BATCH = 100
"""Largest number of answers that are generated together."""


class AnswerProblem(Problem):
    """The answer to a prompt, token by token.

    A batch has `"token_ids"` and `"targets"`, int32 `(B, T)`; `"scored"`, bool
    `(B, T)`: whether a target is of the answer or its end; and `"lengths"`,
    int32 `(B,)`. A subclass gives the batches.

    While a model trains, an answer is an exact match if each of its tokens is
    the most likely one after the right tokens before it, which is when greedy
    generation would write it. In the end the model writes answers itself, and
    a subclass judges what they say.

    Args:
        config: `AnswersConfig`, of which this reads `generated_examples` and
            `longest_answer`.

    Attributes:
        end_token: int. Token that ends an answer.
    """

    end_token: int

    metrics = (
        Metric("exact_match"),
        Metric("token_accuracy"),
        Metric("loss", "nats", higher_is_better=False),
    )

    def loss(self, outputs, batch):
        losses = cross_entropies(outputs, batch["targets"])
        return sum_counted(losses, batch["scored"])

    def sums(self, outputs, batch):
        used, targets = batch["used"], batch["targets"]
        scored = batch["scored"] & used[:, None]
        hits = ops.argmax(outputs, axis=-1) == targets
        wrong = ops.any(~hits & batch["scored"], axis=-1)
        return ops.stack(
            [
                *sum_counted(~wrong, used),
                *sum_counted(hits, scored),
                *sum_counted(cross_entropies(outputs, targets), scored),
            ]
        )

    def measure(self, sums):
        low, high = find_interval(*sums[:2].tolist())
        found = super().measure(sums)
        return {**found, "exact_match_low": low, "exact_match_high": high}

    @abc.abstractmethod
    def prompt(self, length, index):
        """Returns a prompt, a list of token ids.

        Args:
            length: int. One of `lengths`.
            index: int. Number of the prompt.
        """

    @abc.abstractmethod
    def judge(self, length, index, tokens):
        """Judges an answer.

        Args:
            length: int. The length of its prompt.
            index: int. The number of its prompt.
            tokens: int array. What the model wrote.

        Returns:
            `"right"`, `"wrong"`, `"unreadable"` or `"unfinished"`, and the
            name of a group to count it in.
        """

    def measure_model(self, model, progress):
        """Lets the model write answers, greedily, and judges them.

        Args:
            model: `TransformerDecoder`.
            progress: Called with a length, and which fraction of its answers
                is written.

        Returns:
            Dict of `{length: value}`: `"generated_exact_match_by_length"`, its
            bounds `_low_` and `_high_`, and the numbers of answers
            `"unreadable_by_length"` and `"unfinished_by_length"`; and
            `"generated_exact_match_by_group"`.
        """
        count = self.config.generated_examples
        if not count:
            return {}
        found = collections.defaultdict(dict)
        groups = collections.defaultdict(list)
        for length in self.lengths:
            # A task may have fewer problems of this length.
            wanted = min(count, self.evaluation_examples(length))
            verdicts = collections.Counter()
            written = self._write(model, length, wanted)
            for index, tokens in enumerate(written):
                verdict, group = self.judge(length, index, tokens)
                verdicts[verdict] += 1
                groups[group].append(verdict == "right")
                if (index + 1) % BATCH == 0 or index + 1 == wanted:
                    progress(length, (index + 1) / wanted)
            low, high = find_interval(verdicts["right"], wanted)
            for name, value in {
                "generated_exact_match": verdicts["right"] / wanted,
                "generated_exact_match_low": low,
                "generated_exact_match_high": high,
                "unreadable": verdicts["unreadable"],
                "unfinished": verdicts["unfinished"],
            }.items():
                found[f"{name}_by_length"][str(length)] = value
        return {
            **found,
            "generated_exact_match_by_group": {
                name: sum(right) / len(right) for name, right in groups.items()
            },
        }

    def _write(self, model, length, count):
        """Yields the tokens of answers to all prompts of a length."""
        prompts = [self.prompt(length, index) for index in range(count)]
        width = max(map(len, prompts))
        for start in range(0, count, BATCH):
            part = prompts[start : start + BATCH]
            # A batch that is full, for one program.
            part += part[-1:] * (min(BATCH, count) - len(part))
            inputs = {
                "token_ids": np.array(
                    [ids + [0] * (width - len(ids)) for ids in part], np.int32
                ),
                "lengths": np.array([len(ids) for ids in part], np.int32),
            }
            answers = model.generate(
                inputs,
                self.config.longest_answer(length),
                end_token=self.end_token,
            )
            yield from answers[: count - start]


def find_interval(right, count):
    """Returns the interval of 95% for a share (Wilson, 1927).

    >>> find_interval(50, 100)
    (0.404, 0.596)

    Args:
        right: Number of successes.
        count: Number of trials, at least 1.

    Returns:
        Two floats, from 0 to 1, rounded to a thousandth.
    """
    z, share = 1.96, right / count
    middle = share + z**2 / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    whole = 1 + z**2 / count
    low, high = (middle - half) / whole, (middle + half) / whole
    return round(max(low, 0.0), 3), round(min(high, 1.0), 3)
