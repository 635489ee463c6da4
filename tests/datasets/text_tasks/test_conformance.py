"""What every text task promises, by the rows in the files of tests."""

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
from tests.datasets.text_tasks import test_copies, test_scratchpads

ROWS = {**test_copies.ROWS, **test_scratchpads.ROWS}
for name, cls in TEXT_TASKS.items():
    if name not in ROWS:
        file = cls.__module__.rpartition(".")[2]
        module = f"tests.datasets.text_tasks.test_{file}"
        ROWS |= importlib.import_module(module).ROWS

GENERATED = sorted(name for name, row in ROWS.items() if row.solver)
WITH_KINDS = [name for name in GENERATED if TEXT_TASKS[name].kinds]


def read(task, text):
    return task.read_answer(base.split_words(text))


@pytest.mark.parametrize("name", GENERATED)
def test_answers_known_words_and_the_longest_text(name):
    for template in TEXT_TASKS[name].templates:
        task = TEXT_TASKS[name](template=template)
        fields = FIELDS if task.step_words else ()
        known = {*task.words, *(scratchpad.WORDS if fields else ())}
        for length in (task.trained_lengths[-1], task.tested_lengths[-1]):
            examples = length_examples(task, length, fields=fields)
            bins, most = len(examples.bins), collections.defaultdict(int)
            for index in range(max(100, 10 * bins)):
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


@pytest.mark.parametrize("name", TEXT_TASKS)
def test_wording(name):
    row, task = ROWS[name], TEXT_TASKS[name]()
    problem, prompt, answer = row.golden
    assert task.write_prompt(problem) == prompt
    assert task.write_answer(problem) == answer
    for text in row.wrong:
        assert read(task, text) is None, text
    assert bool(task.step_words) == bool(row.steps)
    if row.steps:
        written = scratchpad.write_scratchpad(task.steps(problem), FIELDS)
        assert written == f"Thinking step by step:  {row.steps} . Thus,  "
        outputs = scratchpad.write_scratchpad(task.steps(problem), ["output"])
        assert outputs.count("out ") == written.count("out ")
        assert " re " not in outputs
        words = base.split_words(written + answer)
        assert scratchpad.after_scratchpad(words) == base.split_words(answer)


def test_bins_are_equal_and_not_those_of_tests():
    task = TEXT_TASKS["addition"]()
    training = training_examples(task, task.trained_lengths, size=100_000)
    assert set(training.counts) == {1562, 1563}
    tested = [p for n in task.tested_lengths for p in task.bins_at(n)]
    assert len(tested) == 192
    assert not set(training.bins) & set(tested)


@pytest.mark.parametrize("name", ["copy_repeated", "copy_replace", "scan"])
def test_problems_come_up_once_in_training_or_validation(name):
    task = TEXT_TASKS[name]()
    trained = task.trained_lengths[:3]
    training = training_examples(task, trained, size=0)
    drawn = [training.problem(index) for index in range(len(training))]
    for length, count in zip(trained, training.counts, strict=True):
        validation = validation_examples(training, length)
        left = task.count((length,)) - count
        drawn += [validation.problem(index) for index in range(left)]
    assert len(drawn) == len(set(drawn))
    assert len(drawn) == sum(task.count((n,)) for n in trained)


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
