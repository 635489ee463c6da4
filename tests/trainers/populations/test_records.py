"""Files of a population beside its checkpoints."""

import dataclasses

import numpy as np
import pytest

from trainers.errors import ConfigError
from trainers.populations import records
from trainers.populations.members import Member


@dataclasses.dataclass
class Members:
    """Stands in for a population, the second member of which diverges."""

    members: tuple = (Member(0, 1e-3), Member(7, 1e-3), Member(0, 1e-2))
    losses: tuple = (0.5, 0.25, 1e-5)

    def find_diverged(self, step):
        return {1: 3} if step >= 3 else {}


def begin_losses(path, step=0):
    losses = records.MemberLosses(path, Members())
    losses.on_train_begin({"step": step})
    return losses


def test_losses_after_the_last_checkpoint_are_dropped(tmp_path, capsys):
    losses = begin_losses(tmp_path)
    for step in (2, 4, 6):
        losses.on_train_batch_end(step, {"seconds": step / 2})
    line = "seed 7, learning rate 0.001: diverged in step 3"
    assert capsys.readouterr().out.count(line) == 1
    path = tmp_path / "losses.csv"
    # A kill may cut the last line short.
    path.write_text(path.read_text() + "8,4.0")
    losses = begin_losses(tmp_path, 4)
    header, *rows = path.read_text().splitlines()
    assert header.count("learning rate") == 3
    assert rows == ["2,1.000,0.5,0.25,1e-05", "4,2.000,0.5,0.25,1e-05"]
    assert losses.read_last() == [0.5, 0.25, 1e-5]


@pytest.mark.parametrize("content", [b"a,b\n2,1,x,y,z\n", b"\xff\r\0\r,\n"])
def test_damaged_losses_are_dropped(tmp_path, content):
    (tmp_path / "losses.csv").write_bytes(content)
    with pytest.raises(ConfigError, match=r"losses\.csv has no losses of the"):
        begin_losses(tmp_path, 4).read_last()


def test_an_evaluation_continues_that_of_the_same_step(tmp_path):
    sums = np.arange(6.0).reshape(1, 6)
    for length in (12, 13):
        records.Evaluation(tmp_path, "ab", 9, 1).add(length, sums, 1.5)
    again = records.Evaluation(tmp_path, "ab", 9, 1)
    assert again.seconds == 3
    assert again.sums == dict.fromkeys((12, 13), sums.tolist())
    for digest, step in (("ac", 9), ("ab", 8)):
        other = records.Evaluation(tmp_path, digest, step, 1)
        assert (other.seconds, other.sums) == (0, {})


@pytest.mark.parametrize("sums", ["", "3", "[[1, 2]]"])
def test_a_damaged_evaluation_begins_again(sums, tmp_path, capsys):
    content = '{"digest": "ab", "step": 9, "seconds": 1, "sums": {"5": %s}}'
    content %= sums
    (tmp_path / "evaluation.json").write_text(content)
    assert records.Evaluation(tmp_path, "ab", 9, 1).sums == {}
    assert "damaged: evaluating again" in capsys.readouterr().out


SUMS = {
    length: [
        [right, 10, right / 10, 1, 2.0, 4],
        [2 * right, 10, 0, 1, 2.0, 4],
        [0, 10, 0, 1, 8.0, 4],
    ]
    for length, right in ((2, 5), (3, 4), (4, 2))
}
"""Of accuracy, exact matches and losses, each with its count, by member."""


def test_scores_are_means_over_unseen_lengths():
    found = records.describe_members(Members(), [0.5, 0.25, 1.0], SUMS, 2, {})
    first, second, third = found["members"]
    assert first["accuracy_by_length"] == {"2": 0.5, "3": 0.4, "4": 0.2}
    assert first["exact_match_by_length"]["2"] == 0.5
    assert third["loss_by_length"] == {"2": 2.0, "3": 2.0, "4": 2.0}
    assert third["train_loss"] == 1.0
    scores = [member["score"] for member in found["members"]]
    np.testing.assert_allclose(scores, [0.3, 0.6, 0.0])
    assert found["final"] == second
    assert found["all"]["members"] == 3
    summary = found["by_learning_rate"]["0.001"]
    assert summary == pytest.approx(
        {
            "members": 2,
            "best": 0.6,
            "mean": 0.45,
            # Of a sample of two.
            "standard_deviation": 0.3 / 2**0.5,
        }
    )
    assert found["by_learning_rate"]["0.01"]["standard_deviation"] is None


def test_members_that_have_diverged_have_no_scores():
    # The best one and the only one of its learning rate.
    diverged = {1: 4, 2: 9}
    found = records.describe_members(
        Members(), [0.5, 0.1, np.nan], SUMS, 2, diverged
    )
    first, *_, third = found["members"]
    assert third == {"seed": 0, "learning_rate": 1e-2, "diverged_in_step": 9}
    assert found["final"] == first and first["score"] == pytest.approx(0.3)
    assert found["all"] == found["by_learning_rate"]["0.001"]
    assert found["all"]["members"] == 1
    nothing = dict.fromkeys(("best", "mean", "standard_deviation"))
    assert found["by_learning_rate"]["0.01"] == {"members": 0, **nothing}
