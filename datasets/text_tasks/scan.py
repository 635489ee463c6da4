"""SCAN: the actions that a command asks for.

For example:

    Solve: walk after turn left twice[SEP] Left Left Walk
"""

import dataclasses
import functools
import itertools

from datasets.text_tasks.finite import FiniteTask

ACTIONS = {"walk": "Walk", "look": "Look", "run": "Run", "jump": "Jump"}
TURNS = {"left": "Left", "right": "Right"}
TIMES = {"": 1, " twice": 2, " thrice": 3}
WORDS = (
    *(*ACTIONS, *TURNS, "turn", "opposite", "around"),
    *("twice", "thrice", "and", "after", *ACTIONS.values(), *TURNS.values()),
)


@functools.cache
def list_commands():
    """Returns all 20,910 commands with their actions.

    Returns:
        Tuple of pairs of str.
    """
    verbs = dict(ACTIONS)
    for turn, turned in TURNS.items():
        for verb, action in {"turn": "", **ACTIONS}.items():
            once = f"{turned} {action}".strip()
            verbs[f"{verb} {turn}"] = once
            verbs[f"{verb} opposite {turn}"] = f"{turned} {once}"
            verbs[f"{verb} around {turn}"] = " ".join([once] * 4)
    parts = {
        verb + times: " ".join([actions] * count)
        for verb, actions in verbs.items()
        for times, count in TIMES.items()
    }
    commands = dict(parts)
    for first, second in itertools.product(parts, repeat=2):
        commands[f"{first} and {second}"] = f"{parts[first]} {parts[second]}"
        commands[f"{first} after {second}"] = f"{parts[second]} {parts[first]}"
    return tuple(commands.items())


@dataclasses.dataclass(frozen=True, kw_only=True)
class SCAN(FiniteTask):
    """Commands as sequences of actions; the length counts actions.

    Args:
        template: str. Key of `templates`.

    Reference: Lake and Baroni, 2018. https://arxiv.org/abs/1711.00350
    """

    symbols = WORDS
    longest_trained = 25

    def list_problems(self):
        """Returns the commands by their number of actions."""
        problems = {}
        for command, actions in list_commands():
            length = len(actions.split())
            problems.setdefault(length, []).append((command, actions))
        return problems
