"""What every text task promises, tested on all that `TEXT_TASKS` lists.

The row of a task is in the test file of its module.
"""

import collections
import importlib

import numpy as np
import pytest

from datasets.text_tasks import TEXT_TASKS, base, scratchpad
from datasets.text_tasks.examples import (
    evaluation_examples,
    length_examples,
    training_examples,
    validation_examples,
)
from datasets.text_tasks.scratchpad import FIELDS
from datasets.text_tasks.vocabulary import WordVocabulary
from keras_lengen.layers import CoupledPositions

ROWS = {}
for cls in TEXT_TASKS.values():
    file = cls.__module__.rpartition(".")[2]
    module = importlib.import_module(f"tests.datasets.text_tasks.test_{file}")
    ROWS |= module.ROWS

GENERATED = sorted(name for name, row in ROWS.items() if row.solver)
WITH_KINDS = [name for name in GENERATED if TEXT_TASKS[name].kinds]


# The default run has one task of each sort: with a scratchpad, kinds of digits,
# bins of two numbers, two templates, and a list of problems.
DEFAULT = {
    *("summation", "two_digit_multiplication", "hinted_addition"),
    *("reverse_twice", "scan", "copy_replace"),
}
each_task = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.product] * (name not in DEFAULT))
        for name in GENERATED
    ],
)


def read(task, text):
    return task.read_answer(base.split_words(text))


@each_task
def test_answers_known_words_and_the_longest_text(name):
    for template in TEXT_TASKS[name].templates:
        task = TEXT_TASKS[name](template=template)
        fields = FIELDS if task.step_words else ()
        known = {*task.words, *(scratchpad.WORDS if fields else ())}
        for length in (task.trained_lengths[-1], task.tested_lengths[-1]):
            examples = length_examples(task, length, fields=fields)
            bins, most = len(examples.bins), collections.defaultdict(int)
            for index in range(max(300, 10 * bins)):
                problem = examples.problem(index)
                answer = task.write_answer(problem)
                assert read(task, answer) is not None
                if template == "code":
                    prompt = task.write_prompt(problem)
                    assert answer == ROWS[name].solve(prompt)
                words = base.split_words(" ".join(examples.write(problem)))
                assert known >= set(words)
                most[index % bins] = max(most[index % bins], len(words))
            for turn, texts in enumerate(examples.longest()):
                words = base.split_words(" ".join(texts))
                assert known >= set(words)
                assert len(words) >= most[turn]


def test_a_template_that_a_task_has_not():
    with pytest.raises(ValueError, match=r"has the templates code; got"):
        TEXT_TASKS["copy_replace"](template="paper")


@pytest.mark.parametrize("name", TEXT_TASKS)
def test_wording(name):
    row, task = ROWS[name], TEXT_TASKS[name]()
    problem, prompt, answer = row.golden
    assert task.write_prompt(problem) == prompt
    assert task.write_answer(problem) == answer
    if row.steps is None:
        assert task.step_words is None
    else:
        written = scratchpad.write_scratchpad(task.steps(problem), FIELDS)
        steps = f"Thinking step by step:  {row.steps} . Thus,  "
        assert written == steps
        words = base.split_words(written + answer)
        assert scratchpad.after_scratchpad(words) == base.split_words(answer)


@each_task
def test_bins_are_equal_and_splits_apart(name):
    task = TEXT_TASKS[name]()
    trained = task.trained_lengths
    training = training_examples(task, trained, size=100_000)
    size = ROWS[name].training_size
    assert len(training) == size
    places = collections.Counter(
        training.bins[training.find(index)[0]] for index in range(size)
    )
    tested = [p for n in task.tested_lengths for p in task.bins_at(n)]
    assert not set(places) & set(tested)
    if size == 100_000:
        assert max(places.values()) - min(places.values()) <= 1
    if task.count(training.bins[0]) is None:
        return
    # Each problem comes up once, in training or in validation.
    seen = {training.problem(index) for index in range(size)}
    assert len(seen) == size
    kept = set()
    for length in trained:
        validation = validation_examples(training, length)
        left = task.count((length,)) - places[length,]
        kept |= {validation.problem(index) for index in range(left)}
    assert not seen & kept
    assert len(seen | kept) == sum(task.count((n,)) for n in trained)


@pytest.mark.parametrize("name", WITH_KINDS)
def test_kinds_take_turns_and_are_answered(name):
    task = TEXT_TASKS[name]()
    training = training_examples(task, [1, 2, 5], size=0, structured=1.0)
    evaluated = evaluation_examples(training, (5, 30), (1, 2, 5), task.kinds)
    for examples in (training, *evaluated.values()):
        longest = [base.split_words(text[0]) for text in examples.longest()]
        named = map(examples.name_kind, range(len(examples.kinds)))
        assert tuple(named) == examples.kinds
        for index in range(60):
            problem = examples.problem(index)
            prompt = task.write_prompt(problem)
            assert task.write_answer(problem) == ROWS[name].solve(prompt)
            words = base.split_words(prompt)
            assert set(words) <= set(task.words)
            # Programs and positions have to fit the longest problem.
            assert len(words) == len(longest[examples.find(index)[0]])


@pytest.mark.parametrize("name", TEXT_TASKS)
def test_coupled_positions_are_those_of_counterparts(name):
    """Words of the answer meet the words that they are computed from."""
    task = TEXT_TASKS[name]()
    vocabulary = WordVocabulary(task)
    for text, places in ROWS[name].positions:
        sampler = CoupledPositions(**vocabulary.align(task.alignment))
        ids = vocabulary.tokenize(f"${text}")
        assert vocabulary.unknown not in ids
        positions = np.asarray(sampler(np.array([ids])))[0].tolist()
        answer = len(ids) - 1 - len(places)
        assert positions == [0, *places, *range(2, answer + 2)]


@pytest.mark.parametrize("name", TEXT_TASKS)
def test_problems_and_answers_as_people_write_them(name):
    row, task = ROWS[name], TEXT_TASKS[name]()
    problem = task.read_problem(task.typed or row.golden[1])
    assert (problem is not None) == bool(task.typed)
    for text, prompt in row.typed.items():
        assert task.write_prompt(task.read_problem(text)) == prompt
    for text in row.untyped:
        assert task.read_problem(text) is None, text
    for problem, words, described in row.described:
        assert task.describe_answer(problem, words.split()) == described


@pytest.mark.parametrize("name", TEXT_TASKS)
def test_what_answers_say(name):
    row, task = ROWS[name], TEXT_TASKS[name]()
    for text in row.wrong:
        assert read(task, text) is None, text
    for first, second in row.same:
        assert read(task, first) == read(task, second) is not None
    for first, second in row.different:
        assert None is not read(task, first) != read(task, second) is not None
