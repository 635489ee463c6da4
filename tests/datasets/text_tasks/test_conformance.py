"""What every text task promises, tested on all that `TEXT_TASKS` lists.

The row of a task is in the test file of its module.
"""

import collections
import importlib

import pytest

from datasets.text_tasks import TEXT_TASKS, base, scratchpad
from datasets.text_tasks.aligned import AlignedDigits
from datasets.text_tasks.examples import (
    evaluation_examples,
    length_examples,
    training_examples,
    validation_examples,
)
from datasets.text_tasks.scratchpad import FIELDS
from tests.datasets.text_tasks.row import draw
from tests.products import product

ROWS = {}
for cls in TEXT_TASKS.values():
    file = cls.__module__.rpartition(".")[2]
    module = importlib.import_module(f"tests.datasets.text_tasks.test_{file}")
    ROWS |= module.ROWS

GENERATED = sorted(name for name, row in ROWS.items() if row.solver)


def test_rows_are_those_of_the_tasks():
    assert ROWS.keys() == TEXT_TASKS.keys()


each_task = pytest.mark.parametrize(
    "name", product(GENERATED, keep=["addition", "copy_replace", "lego"])
)


@each_task
def test_answers(name):
    task = TEXT_TASKS[name]()
    for problem in draw(task, 4000):
        answer = task.write_answer(problem)
        assert answer == ROWS[name].solve(task.write_prompt(problem))
        assert task.read_answer(base.split_words(answer)) is not None


@each_task
@pytest.mark.parametrize("template", base.TEMPLATES)
def test_the_task_has_all_words_and_the_longest_text(name, template):
    if template not in TEXT_TASKS[name].templates:
        with pytest.raises(ValueError, match=r"has the templates code; got"):
            TEXT_TASKS[name](template=template)
        return
    task = TEXT_TASKS[name](template=template)
    fields = FIELDS if task.step_words else ()
    known = {*task.words, *(scratchpad.WORDS if fields else ())}
    for length in (task.trained_lengths[0], task.tested_lengths[-1]):
        examples = length_examples(task, length, fields=fields)
        longest = collections.defaultdict(int)
        bins = len(examples.bins)
        for index in range(max(300, 10 * bins)):
            texts = examples.write(examples.problem(index))
            words = base.split_words(" ".join(texts))
            assert known >= set(words)
            turn = index % bins
            longest[turn] = max(longest[turn], len(words))
        for turn, texts in enumerate(examples.longest()):
            words = base.split_words(" ".join(texts))
            assert known >= set(words)
            assert len(words) >= longest[turn]


@pytest.mark.parametrize("name", TEXT_TASKS)
def test_wording(name):
    task = TEXT_TASKS[name]()
    problem, prompt, answer = ROWS[name].golden
    assert task.write_prompt(problem) == prompt
    assert task.write_answer(problem) == answer
    if ROWS[name].steps is None:
        assert task.step_words is None
        return
    written = scratchpad.write_scratchpad(task.steps(problem), FIELDS)
    steps = f"Thinking step by step:  {ROWS[name].steps} . Thus,  "
    assert written == steps
    words = base.split_words(written + answer)
    assert scratchpad.after_scratchpad(words) == base.split_words(answer)


@pytest.mark.parametrize("name", TEXT_TASKS)
def test_wording_of_the_paper(name):
    if ROWS[name].paper is None:
        assert "paper" not in TEXT_TASKS[name].templates
        return
    task = TEXT_TASKS[name](template="paper")
    problem, prompt, answer = ROWS[name].paper
    assert task.write_prompt(problem) == prompt
    assert task.write_answer(problem) == answer
    read = task.read_answer(base.split_words(answer))
    assert read is not None
    other = TEXT_TASKS[name]()
    words = base.split_words(other.write_answer(problem))
    assert read == other.read_answer(words)


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


WITH_KINDS = [name for name in GENERATED if TEXT_TASKS[name].kinds]


@pytest.mark.parametrize("name", WITH_KINDS)
def test_kinds_take_turns_and_are_answered(name):
    task = TEXT_TASKS[name]()
    training = training_examples(task, [1, 2, 5], size=0, structured=0.5)
    evaluated = evaluation_examples(training, (5, 30), (1, 2, 5), task.kinds)
    for examples in evaluated.values():
        longest = [base.split_words(text[0]) for text in examples.longest()]
        named = [examples.name_kind(index) for index in range(60)]
        assert tuple(named[: len(task.kinds)]) == task.kinds
        drawn = [examples.problem(index) for index in range(60)]
        assert drawn == [examples.problem(index) for index in range(60)]
        for index, problem in enumerate(drawn):
            prompt = task.write_prompt(problem)
            assert task.write_answer(problem) == ROWS[name].solve(prompt)
            words = base.split_words(prompt)
            assert set(words) <= set(task.words)
            # Programs and positions have to fit the longest problem.
            assert len(words) == len(longest[examples.find(index)[0]])


@pytest.mark.parametrize("name", WITH_KINDS)
def test_structured_training_has_the_bins_and_the_share(name):
    task = TEXT_TASKS[name]()
    given = {"size": 0, "seed": 3}
    uniform = training_examples(task, [1, 6], **given)
    mixed = training_examples(task, [1, 6], **given, structured=0.5)
    every = training_examples(task, [1, 6], **given, structured=1.0)
    bins, same = len(uniform.bins), 0
    for index in range(400 * bins):
        problem = every.problem(index)
        answer = ROWS[name].solve(task.write_prompt(problem))
        assert task.write_answer(problem) == answer
        digits = mixed.bins[index % bins]
        sizes = (
            [len(problem)]
            if isinstance(task, AlignedDigits)
            # Factors have no bins.
            else [len(str(number)) for number in problem[-len(digits) :]]
        )
        assert sizes == list(digits)
        same += mixed.problem(index) == problem
    # Half of the problems, and some that are equal by chance.
    assert 0.45 < same / (400 * bins) < 0.8
    # What is evaluated does not depend on the share of training.
    first = [validation_examples(e, 6).problem(9) for e in (uniform, every)]
    assert first[0] == first[1]


@pytest.mark.parametrize("name", TEXT_TASKS)
def test_examples_of_what_people_type_are_problems(name):
    task = TEXT_TASKS[name]()
    problem = task.read_problem(task.typed or ROWS[name].golden[1])
    assert (problem is not None) == bool(task.typed)


@pytest.mark.parametrize(
    "name", [name for name, row in ROWS.items() if row.wrong]
)
def test_what_is_no_answer(name):
    task = TEXT_TASKS[name]()
    for text in ROWS[name].wrong:
        assert task.read_answer(base.split_words(text)) is None, text


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [(name, *pair) for name, row in ROWS.items() for pair in row.same],
)
def test_answers_that_say_the_same(name, first, second):
    task = TEXT_TASKS[name]()
    read = [task.read_answer(base.split_words(t)) for t in (first, second)]
    assert read[0] == read[1] is not None
