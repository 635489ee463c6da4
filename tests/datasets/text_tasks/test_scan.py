import re

from datasets.text_tasks import TEXT_TASKS
from datasets.text_tasks.examples import training_examples
from tests.datasets.text_tasks.row import Row


def act(prompt):
    def run(command):
        for joint in (" after ", " and "):
            if joint in command:
                first, second = map(run, command.split(joint))
                return second + first if "after" in joint else first + second
        for word, times in (("twice", 2), ("thrice", 3)):
            if command.endswith(word):
                return run(command.removesuffix(word).strip()) * times
        verb, *manner = command.split()
        action = [] if verb == "turn" else [verb.capitalize()]
        turn = [manner[-1].capitalize()] if manner else []
        if "around" in manner:
            return (turn + action) * 4
        return turn * (1 + ("opposite" in manner)) + action

    return " ".join(run(re.fullmatch(r"Solve: (.+)\[SEP\]", prompt)[1]))


ROWS = {
    "scan": Row(
        golden=(("walk", "Walk"), "Solve: walk[SEP] ", "Walk"), solver=act
    )
}


def test_scan_has_the_published_sizes():
    task = TEXT_TASKS["scan"]()
    # 90% of each length; the published 15,997 are 90% of all together.
    assert len(training_examples(task, task.trained_lengths, size=0)) == 15_996
    assert sum(task.count((n,)) for n in task.trained_lengths) == 17_774
    assert sum(task.count((n,)) for n in task.tested_lengths) == 3_136
