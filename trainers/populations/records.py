"""Files of a population beside its checkpoints."""

import csv
import dataclasses
import io
import json
import statistics

import keras
import numpy as np

from trainers.engine.problem import average_unseen
from trainers.errors import ConfigError
from trainers.records.files import appending, read_bytes, replacing
from trainers.records.workdir import write_json

METRICS = ("accuracy", "exact_match", "loss")
"""Names of the metrics of `sum_answer_metrics`, in order."""


class MemberLosses(keras.callbacks.Callback):
    """Writes `losses.csv`: step, seconds, and the mean loss of each member.

    Prints which members diverge.

    Args:
        path: `pathlib.Path` of the working directory.
        population: The `Population`.
    """

    def __init__(self, path, population):
        super().__init__()
        self._path = path / "losses.csv"
        self._population = population
        self._reported = set()

    def on_train_begin(self, logs=None):
        """Drops rows that a killed run wrote after its last checkpoint."""
        content = read_bytes(self._path) or b""
        # A kill may have cut the last line short.
        lines = content.decode(errors="replace").rpartition("\n")[0]
        rows = [line.split(",") for line in lines.splitlines()]
        kept = [
            row
            for row in rows
            if self._is_row(row) and int(row[0]) <= logs["step"]
        ]
        members = map(str, self._population.members)
        text = io.StringIO(newline="")
        csv.writer(text).writerows([["step", "seconds", *members], *kept])
        with replacing(self._path) as file:
            file.write(text.getvalue().encode())

    def on_train_batch_end(self, batch, logs=None):
        """Adds the mean losses of the steps since the last call."""
        row = (batch, f"{logs['seconds']:.3f}", *self._population.losses)
        with appending(self._path) as file:
            csv.writer(file).writerow(row)
        for number, step in self._population.find_diverged(batch).items():
            if number not in self._reported:
                self._reported.add(number)
                print(
                    f"\n{self._population.members[number]}: diverged in step "
                    f"{step}, the others train on",
                    flush=True,
                )

    def read_last(self):
        """Returns the last losses, one for each member.

        Raises:
            ConfigError: If there are none.
        """
        lines = (read_bytes(self._path) or b"").decode().splitlines()
        last = lines[-1].split(",") if lines else []
        if not self._is_row(last):
            raise ConfigError(
                f"{self._path} has no losses of the last step: restore it, or "
                "choose another --workdir."
            )
        return [float(loss) for loss in last[2:]]

    def _is_row(self, row):
        """Returns whether texts are a step, seconds and a loss a member."""
        try:
            numbers = [float(text) for text in row]
        except ValueError:
            return False
        expected = 2 + len(self._population.members)
        return len(numbers) == expected and row[0].isdecimal()


class Evaluation:
    """The lengths that are evaluated so far, in `evaluation.json`.

    Args:
        path: `pathlib.Path` of the working directory.
        digest: str. Digest of the run's configuration.
        step: int. Number of steps that the members were trained for.
        members: int. Number of members.

    Attributes:
        sums: Dict from lengths to lists `(members, 2 * metrics)`.
        seconds: float. Seconds spent evaluating.
    """

    def __init__(self, path, digest, step, members):
        self._path = path / "evaluation.json"
        self._of = {"digest": digest, "step": step}
        self.sums, self.seconds = {}, 0.0
        content = read_bytes(self._path)
        if content is None:
            return
        shape = (members, 2 * len(METRICS))
        try:
            found = json.loads(content)
            if self._of == {name: found[name] for name in self._of}:
                sums = {
                    int(n): np.reshape(np.array(saved, float), shape).tolist()
                    for n, saved in found["sums"].items()
                }
                self.sums, self.seconds = sums, float(found["seconds"])
        except (ValueError, TypeError, KeyError, AttributeError):
            print(f"{self._path} is damaged: evaluating again")

    def add(self, length, sums, seconds):
        """Adds the sums of a length, an array `(members, 2 * metrics)`."""
        self.sums[length] = sums.tolist()
        self.seconds += seconds
        write_json(
            self._path,
            {**self._of, "seconds": self.seconds, "sums": self.sums},
        )


def describe_members(population, losses, sums, longest_trained, diverged):
    """Returns the results of all members, and what they have in common.

    Members that have diverged have no results, and are left out of what the
    others have in common.

    Args:
        population: The `Population`.
        losses: List of float, the last training loss of each member.
        sums: Dict from lengths to arrays `(members, 2 * metrics)`.
        longest_trained: int. The longest trained length.
        diverged: Dict from the numbers of members that have diverged to the
            step, not for all members.

    Returns:
        Dict for `results.json`.
    """
    members, finite = [], []
    for number, (member, loss) in enumerate(
        zip(population.members, losses, strict=True)
    ):
        described = dataclasses.asdict(member)
        members.append(described)
        if number in diverged:
            described["diverged_in_step"] = diverged[number]
            continue
        finite.append(described)
        sums_at = {
            n: np.reshape(found[number], (-1, 2)) for n, found in sums.items()
        }
        by_metric = {
            name: {n: pairs[i, 0] / pairs[i, 1] for n, pairs in sums_at.items()}
            for i, name in enumerate(METRICS)
        }
        described |= {
            "train_loss": loss,
            "score": average_unseen(by_metric[METRICS[0]], longest_trained),
            **{
                f"{name}_by_length": {str(n): v for n, v in by.items()}
                for name, by in by_metric.items()
            },
        }
    return {
        "final": max(finite, key=lambda member: member["score"]),
        "all": summarize([member["score"] for member in finite]),
        "by_learning_rate": {
            str(rate): summarize(
                [m["score"] for m in finite if m["learning_rate"] == rate]
            )
            for rate in {m["learning_rate"]: None for m in members}
        },
        "members": members,
    }


def summarize(scores):
    """Returns number, best, mean and standard deviation of scores.

    `None` for those that need more scores.
    """
    return {
        "members": len(scores),
        "best": max(scores, default=None),
        "mean": statistics.mean(scores) if scores else None,
        "standard_deviation": statistics.stdev(scores)
        if len(scores) > 1
        else None,
    }
