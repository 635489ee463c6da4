"""Problems of writing the answer to a prompt."""

import abc
import collections
import itertools

import numpy as np
from keras import ops

from datasets.buckets import length_buckets
from keras_lengen.evaluation import wilson_interval
from trainers.engine.evaluation_sizes import PAIRS, PROGRAMS
from trainers.engine.losses import cross_entropies, sum_counted
from trainers.engine.problem import Metric, Problem, average_unseen
from trainers.engine.seed_states import find_seed_states

BATCH = 128
"""Largest number of answers that are generated together."""

SHOWN = 3
"""Largest number of mistakes at each length that results show."""


class AnswerProblem(Problem):
    """The answer to a prompt, token by token.

    A batch has `"token_ids"` and `"targets"`, int32 `(B, T)`; `"scored"`, bool
    `(B, T)`: whether a target is of the answer or its end; and `"lengths"`,
    int32 `(B,)`. If there are `kinds`, an evaluation batch also has `"kinds"`,
    int32 `(B,)`, the number of each example's kind. A subclass gives the
    batches.

    While a model trains, an example is an exact match if each scored token is
    the most likely one after the right tokens before it; greedy generation then
    writes exactly these. In the end the model writes answers itself, and a
    subclass judges what they say: steps before the answer do not count then.

    Args:
        config: Configuration of the run, with `generated_examples` and
            `longest_answer`, too.

    Attributes:
        end_token: int. Token that ends an answer.
    """

    end_token: int
    floor_labels = {"floor": "most frequent answer"}
    unmeasured = "answers that the model writes itself"

    metrics = (
        Metric("exact_match"),
        Metric("token_accuracy"),
        Metric("loss", "nats", higher_is_better=False),
    )
    examples_sum = 1

    def loss(self, outputs, batch):
        losses = cross_entropies(outputs, batch["targets"])
        return sum_counted(losses, batch["scored"])

    def sums(self, outputs, batch):
        used, targets = batch["used"], batch["targets"]
        scored = batch["scored"] & used[:, None]
        hits = ops.argmax(outputs, axis=-1) == targets
        right = ~ops.any(~hits & batch["scored"], axis=-1)
        of_kinds = (
            sum_counted(right, used & (batch["kinds"] == kind))
            for kind in range(len(self.kinds))
        )
        return ops.stack(
            [
                *sum_counted(right, used),
                *sum_counted(hits, scored),
                *sum_counted(cross_entropies(outputs, targets), scored),
                *itertools.chain.from_iterable(of_kinds),
            ]
        )

    def measure(self, sums):
        # Before the metrics: the last of these ends the record.
        return {
            **self._measure_kinds(sums[2 * len(self.metrics) :]),
            **super().measure(sums),
        }

    def _measure_kinds(self, sums):
        """Returns the exact match of each kind, of examples that it has."""
        return {
            f"exact_match_{kind}": right / count
            for kind, (right, count) in zip(
                self.kinds, sums.reshape(-1, 2).tolist(), strict=True
            )
            if count
        }

    def evaluation_examples(self, length):
        return self.fit_count(length, self.config.evaluation_examples)

    def floors(self):
        found = {}
        for length in self.lengths:
            count = self.evaluation_examples(length)
            answers = [self.answer(length, index) for index in range(count)]
            ((_, most),) = collections.Counter(answers).most_common(1)
            found[length] = most / count
        return {"floor": found}

    @abc.abstractmethod
    def fit_count(self, length, count):
        """Returns a number of examples that there are, all groups alike.

        Args:
            length: int. One of `lengths`.
            count: int. Number of examples that are wanted at least, if there
                are so many.
        """

    @abc.abstractmethod
    def prompt(self, length, index):
        """Returns a prompt, a list of token ids.

        Args:
            length: int. One of `lengths`.
            index: int. Number of the prompt.
        """

    @abc.abstractmethod
    def answer(self, length, index):
        """Returns the right answer to a prompt, a str."""

    @abc.abstractmethod
    def read_prompt(self, text):
        """Reads a prompt as a person may type it.

        Args:
            text: str.

        Returns:
            The ids of the prompt, a list of int; and a function from the ids
            of an answer to a line that says what it means, a str, or `""`.

        Raises:
            ConfigError: If it is no prompt.
        """

    @abc.abstractmethod
    def read(self, tokens):
        """Returns the text of token ids, a str."""

    def name_kind(self, length, index):
        """Returns the kind of a prompt, one of `kinds`; `""`: it has none."""
        return ""

    def seen_share(self, length, count):
        """Returns which share of some examples training has seen, too.

        `None` where it has seen none, or nobody knows.
        """
        return None

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
            bounds `_low_` and `_high_`, the numbers of answers
            `"answers_by_length"`, `"unreadable_by_length"` and
            `"unfinished_by_length"`, and `"seen_in_training_by_length"`, the
            share of problems that training has, too. For each kind,
            `"generated_exact_match_{kind}_by_length"`. Of groups:
            `"generated_exact_match_by_group"` and `"answers_by_group"`. And
            `"generated_score"`, the mean over unseen lengths,
            `"generated_mean"`, over all lengths, and `"mistakes"`, some answers
            that are not right: a list of dicts with the length, the prompt,
            the right answer, what the model wrote, and the verdict.
        """
        count = self.config.generated_examples
        if not count:
            return {}
        found = collections.defaultdict(dict)
        groups = collections.defaultdict(list)
        mistakes = []
        for length in self.lengths:
            wanted = self.fit_count(length, count)
            verdicts, kinds = [], collections.defaultdict(list)
            written = self._write(model, length, wanted)
            for index, tokens in enumerate(written):
                verdict, group = self.judge(length, index, tokens)
                is_right = verdict == "right"
                kind = self.name_kind(length, index)
                verdicts.append(verdict)
                groups[group].append(is_right)
                kinds[kind].append(is_right)
                wrong = len(verdicts) - verdicts.count("right")
                if not is_right and wrong <= SHOWN:
                    mistakes.append(
                        {
                            "length": length,
                            **({"kind": kind} if kind else {}),
                            "prompt": self.read(self.prompt(length, index)),
                            "answer": self.answer(length, index),
                            "written": self.read(tokens.tolist()),
                            "verdict": verdict,
                        }
                    )
                if (index + 1) % BATCH == 0 or index + 1 == wanted:
                    progress(length, (index + 1) / wanted)
            for name, value in {
                **_describe_verdicts(verdicts),
                **{
                    f"generated_exact_match_{kind}": _mean(kinds[kind])
                    for kind in self.kinds
                },
                "seen_in_training": self.seen_share(length, wanted),
            }.items():
                if value is not None:
                    found[f"{name}_by_length"][str(length)] = value
        shares = found["generated_exact_match_by_length"]
        return {
            **found,
            "generated_exact_match_by_group": {
                name: _mean(right) for name, right in groups.items()
            },
            "answers_by_group": {n: len(right) for n, right in groups.items()},
            "generated_score": average_unseen(shares, self.longest_trained),
            "generated_mean": _mean(shares.values()),
            "mistakes": mistakes,
        }

    def prepare_model(self, model, length):
        """Prepares a model for writing answers to prompts of a length."""

    def written_sizes(self, length, *, exact):
        """Returns the padded numbers of tokens of prompts and of answers.

        Args:
            length: int. One of `lengths`.
            exact: bool. Whether they are those of the length, and not of a
                few longer ones; each pair needs a program.
        """
        answers = [self.config.longest_answer(n) for n in self.lengths]
        totals = list(map(self.tokens, self.lengths))
        prompts = [t - n for t, n in zip(totals, answers, strict=True)]
        number = self.lengths.index(length)
        needed = prompts[number], answers[number]
        padded = tuple(
            min(n for n in length_buckets(sizes, PROGRAMS) if n >= wanted)
            for sizes, wanted in zip((prompts, answers), needed, strict=True)
        )
        return needed if exact or sum(padded) > max(totals) else padded

    def _write(self, model, length, count):
        """Yields the tokens of answers to all prompts of a length."""
        prompts = [self.prompt(length, index) for index in range(count)]
        longest = self.config.longest_answer(length)
        self.prepare_model(model, length)
        sampler = model.encoding.sampler
        width, new_tokens = self.written_sizes(
            # Positions are drawn for as many tokens as there may be.
            length,
            exact=(sampler.is_random or sampler.stretches)
            and not sampler.reads_tokens,
        )
        rng = np.random.default_rng([self.config.seed, length])
        for state in find_seed_states(model):
            state.assign(rng.integers(0, 2**31 - 1, 2).astype(state.dtype))
        # As many together as an evaluation has room for.
        size = min(BATCH, count, max(1, PAIRS // width**2))
        for start in range(0, count, size):
            part = prompts[start : start + size]
            # A batch that is full, for one program.
            part += part[-1:] * (size - len(part))
            inputs = {
                "token_ids": np.array(
                    [ids + [0] * (width - len(ids)) for ids in part], np.int32
                ),
                "lengths": np.array([len(ids) for ids in part], np.int32),
                # Without the padding of the answers.
                "reference_length": np.array(
                    [len(ids) + longest for ids in part], np.float32
                ),
            }
            answers = model.generate(
                inputs, new_tokens, end_token=self.end_token
            )
            yield from answers[: count - start]


def _describe_verdicts(verdicts):
    """Returns what verdicts, a list of str, say of the answers of a length."""
    count, right = len(verdicts), verdicts.count("right")
    low, high = (round(end, 3) for end in wilson_interval(right / count, count))
    return {
        "generated_exact_match": right / count,
        "generated_exact_match_low": low,
        "generated_exact_match_high": high,
        "answers": count,
        "unreadable": verdicts.count("unreadable"),
        "unfinished": verdicts.count("unfinished"),
    }


def _mean(values):
    return sum(values) / len(values)
