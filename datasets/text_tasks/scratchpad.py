"""Scratchpads: the steps to an answer, before the answer.

    Thinking step by step: in 5 comp 5 + sum = 5 + 0 = out 5 [ sum: 5 = 5 ]
    re 9 # in 9 comp ... . Thus, The answer is 4 .

Each step has the fields that are enabled, each after its mark.

Reference: Kazemnejad et al., 2023, section 6 and appendix D.3.
https://arxiv.org/abs/2305.19466
"""

from datasets.text_tasks.base import Step, split_words

FIELDS = Step._fields

BEGIN = "Thinking step by step: "
END = ". Thus, "
MARKS = {
    "input": "in {}",
    "computation": "comp {}",
    "output": "out {}",
    "variable": "[ {} ]",
    "remaining": "re {}",
}
WORDS = (
    *split_words(BEGIN),
    *split_words(END),
    *("in", "comp", "out", "[", "]", "re", "#"),
)
"""All words of scratchpads that are not of a task."""

_END = split_words(END)


def write_scratchpad(steps, fields):
    """Writes the steps to an answer.

    Args:
        steps: Iterable of `Step`s.
        fields: Sequence of names of the fields to write, of `FIELDS`.

    Returns:
        str, `""` without fields.
    """
    if not fields:
        return ""
    written = (
        " ".join(
            MARKS[name].format(value)
            for name, value in step._asdict().items()
            if name in fields and value is not None
        )
        for step in steps
    )
    return f"{BEGIN} {' # '.join(written)} {END} "


def after_scratchpad(words):
    """Returns the words after a scratchpad; `None`: it has no end.

    Args:
        words: List of str. The generated words.
    """
    for start in range(len(words) - len(_END), -1, -1):
        if words[start : start + len(_END)] == _END:
            return words[start + len(_END) :]
    return None
