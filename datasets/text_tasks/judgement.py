"""Judges generated answers."""

from datasets.text_tasks.base import split_words
from datasets.text_tasks.scratchpad import after_scratchpad


def judge(examples, index, vocabulary, tokens):
    """Judges a generated answer.

    Steps of a scratchpad and spaces are ignored.

    Args:
        examples: `Examples`.
        index: int. The number of the example.
        vocabulary: `WordVocabulary`.
        tokens: List of int. The generated tokens.

    Returns:
        `"right"`, `"wrong"`, `"unfinished"` without an end, or `"unreadable"`
        if no answer of the task looks like this.
    """
    if vocabulary.end not in tokens:
        return "unfinished"
    words = vocabulary.detokenize(tokens)
    if examples.fields:
        words = after_scratchpad(words)
    task = examples.task
    value = None if words is None else task.read_answer(words)
    if value is None:
        return "unreadable"
    answer = split_words(task.write_answer(examples.problem(index)))
    return "right" if value == task.read_answer(answer) else "wrong"
