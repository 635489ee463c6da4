"""Every task: answers, words, bins and scratchpads."""

import collections
import re

import numpy as np
import pytest

from datasets.text_tasks import TEXT_TASKS, base, scratchpad
from datasets.text_tasks.examples import (
    evaluation_examples,
    find_seen_share,
    length_examples,
    training_examples,
    validation_examples,
)
from datasets.text_tasks.lego import LEGO, Chain
from datasets.text_tasks.polynomial import Terms
from datasets.text_tasks.scratchpad import FIELDS
from datasets.text_tasks.vocabulary import WordVocabulary
from keras_lengen.layers import CoupledPositions
from tests.datasets.text_tasks.solvers import SOLVERS, solve
from tests.products import product

GENERATED = sorted(TEXT_TASKS.keys() - {"pcfg"})


def draw(task, count):
    """Yields training and test problems in turns, half of them tests."""
    training = training_examples(task, task.trained_lengths, size=100_000)
    longest = length_examples(task, task.tested_lengths[-1])
    for index in range(count // 2):
        # Spread over all bins.
        yield training.problem(7919 * index % len(training))
        yield longest.problem(index)


def test_every_task_has_a_solver():
    assert sorted(SOLVERS) == GENERATED


each_task = pytest.mark.parametrize(
    "name", product(GENERATED, keep=["addition", "copy_replace", "lego"])
)


@each_task
def test_answers(name):
    task = TEXT_TASKS[name]()
    for problem in draw(task, 4000):
        answer = task.write_answer(problem)
        assert answer == solve(name, task.write_prompt(problem))
        assert task.read_answer(base.split_words(answer)) is not None


def test_permuted_definitions():
    task = LEGO(permuted=True)
    orders = set()
    for problem in draw(task, 500):
        orders.add(problem.order)
        prompt = task.write_prompt(problem)
        assert task.write_answer(problem) == solve("lego", prompt)
    assert len(orders) > 100


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


GOLDEN = {
    "addition": (
        (47, 9),
        "Compute 4 7 + 9 ? ",
        "The answer is 5 6.",
        "in 7, 9 comp 7 + 9 + carry = 1 6 + 0 = 1 6 out 6 [ carry: 1 ] re 4 + 0"
        " # in 4, 0 comp 4 + 0 + carry = 4 + 1 = 5 out 5 [ carry: 0 ] re  + ",
    ),
    "polynomial": (
        Terms(-2, ((3, 3), (-1, 0))),
        "Evaluate at x = - 2 in 3 * x ** 3 + - 1 * x ** 0 ? ",
        "The answer is 5.",
        "in 3 * x ** 3 comp 3 * - 2 ** 3 = 3 * - 8 out - 2 4 "
        "[ sum: 0 + - 2 4 = 6 ] re - 1 * x ** 0 # "
        "in - 1 * x ** 0 comp - 1 * - 2 ** 0 = - 1 * 1 out - 1 "
        "[ sum: 6 + - 1 = 5 ] re ",
    ),
    "sort": (
        (7, 1, 7),
        "Sort the following list [ w7, w1, w7 ]. ",
        "The sorted list is [ w1, w7, w7 ].",
        "in w7 comp The minimum of the unsorted portion out w1 re [ w7, w7 ] # "
        "in w7 comp The minimum of the unsorted portion out w7 re [ w7 ] # "
        "in w7 comp The minimum of the unsorted portion out w7 re [  ]",
    ),
    "sort_multi_digit": (
        (120, 35),
        "Sort the following list [ 1 2 0, 3 5 ]. ",
        "The sorted list is [ 3 5, 1 2 0 ].",
        "in 1 2 0 comp The minimum of the unsorted portion out 3 5 "
        "re [ 1 2 0 ] # in 1 2 0 comp The minimum of the unsorted portion "
        "out 1 2 0 re [  ]",
    ),
    "summation": (
        (4, 9),
        "Compute: 4 + 9 .[SEP] ",
        "The answer is 3 .",
        "in 4 comp 4 + sum = 4 + 0 = out 4 [ sum: 4 = 4 ] re 9 # "
        "in 9 comp 9 + sum = 9 + 4 = out 1 3 [ sum: 1 3 = 3 ] re ",
    ),
    "parity": (
        (1, 0),
        "Is the number of 1's even in the sequence [ 1, 0 ] ? ",
        "The answer is No.",
        "in 1 comp 1 ** par = 1 ** 0 out 1 [ par: 1 ] re [ 0 ] # "
        "in 0 comp 0 ** par = 0 ** 1 out 1 [ par: 1 ] re [  ]",
    ),
    "lego": (
        Chain(("c", "a", "b"), (-1, 1, 1), (0, 1, 2), 1),
        "If c = -1, a = - c, b = + a. Then, what is the value of a? ",
        "The answer is +1.",
        "in c comp  out -1 re a = - c, b = + a # "
        "in a comp - c = - -1 out +1 re b = + a",
    ),
    "copy": ((7, 1), "Copy: w7 w1 [SEP] ", "w7 w1", None),
    "copy_twice": ((7, 1), "Copy: w7 w1 [SEP] ", "w7 w1 [NEXT] w7 w1", None),
    "copy_repeated": ((7, 7), "Copy: w7 w7 [SEP] ", "w7 w7", None),
    "copy_repeated_twice": (
        (7, 7),
        "Copy: w7 w7 [SEP] ",
        "w7 w7 w7 w7",
        None,
    ),
    "copy_replace": (
        (7, 1, 2),
        "Replace w7 with w1 in w7 w7 [SEP] ",
        "w1 w1",
        None,
    ),
    "reverse": ((7, 1), "Reverse: w7 w1 [SEP] ", "w1 w7", None),
    "reverse_twice": (
        (7, 1),
        "Reverse: w7 w1 [SEP] ",
        "w1 w7 [NEXT] w1 w7",
        None,
    ),
    "reverse_and_back": (
        (7, 1),
        "Reverse: w7 w1 [SEP] ",
        "w1 w7 [NEXT] w7 w1",
        None,
    ),
    "aligned_addition": (
        (653, 49),
        "$ 6 5 3 + 0 4 9 = ",
        "2 0 7 0",
        None,
    ),
    "aligned_multiplication": (
        (120, 5),
        "$ 1 2 0 * 0 5 = ",
        "0 0 6 0 0",
        None,
    ),
    "aligned_copy": ((7, 0, 1), "$ 7 0 1 = ", "7 0 1", None),
    "aligned_reverse": ((7, 0, 1), "$ 7 0 1 = ", "1 0 7", None),
    "aligned_parity": ((1, 0, 1), "$ 1 0 1 = ", "1 1 0", None),
    "marked_addition": (
        (653, 49),
        "$ ^ 6 5 3 + ^ 0 4 9 = ",
        "2 0 7 0",
        None,
    ),
    "reversed_addition": (
        (653, 49),
        "$ 3 5 6 + 9 4 0 = ",
        "2 0 7 0",
        None,
    ),
    "hinted_addition": (
        (42, 39, 5),
        "$ h5 2 h6 4 + h5 9 h6 3 = ",
        "h5 1 h6 8",
        None,
    ),
    "scan": (
        ("jump around left and walk", "Left Jump"),
        "Solve: jump around left and walk[SEP] ",
        "Left Jump",
        None,
    ),
    "pcfg": (
        ("append A1 , B2", "A1 B2"),
        "Solve: append A1 , B2[SEP] ",
        "A1 B2",
        None,
    ),
}
"""Problem, prompt, answer and steps of each task."""


@pytest.mark.parametrize("name", TEXT_TASKS)
def test_wording(name):
    task = TEXT_TASKS[name]()
    problem, prompt, answer, steps = GOLDEN[name]
    assert task.write_prompt(problem) == prompt
    assert task.write_answer(problem) == answer
    if steps is None:
        assert task.step_words is None
        return
    written = scratchpad.write_scratchpad(task.steps(problem), FIELDS)
    assert written == f"Thinking step by step:  {steps} . Thus,  "
    words = base.split_words(written + answer)
    assert scratchpad.after_scratchpad(words) == base.split_words(answer)


PAPER_GOLDEN = {
    "addition": ((47, 9), "Compute: 4 7 + 9 ? ", "The answer is 5 6."),
    "polynomial": (
        Terms(3, ((3, 0), (1, 1), (1, 2))),
        "Evaluate x = 3 in ( 3 x ** 0 + 1 x ** 1 + 1 x ** 2 ) % 1 0 ? ",
        "The answer is 5.",
    ),
    "sort": (
        (3, 1, 4, 1, 5),
        "Sort the following numbers: w3 w1 w4 w1 w5 ? ",
        "The answer is w1 w1 w3 w4 w5.",
    ),
    "sort_multi_digit": (
        (120, 35),
        "Sort the following numbers: 1 2 0, 3 5 ? ",
        "The answer is 3 5, 1 2 0.",
    ),
    "summation": (
        (1, 2, 3, 4, 7),
        "Compute: ( 1 + 2 + 3 + 4 + 7 ) % 1 0 ? ",
        "The answer is 7.",
    ),
    "parity": (
        (1, 0, 0, 1, 1),
        "Is the number of 1's even in [ 1 0 0 1 1 ] ? ",
        "The answer is No.",
    ),
    "lego": (
        Chain(("a", "b", "c", "d"), (-1, 1, 1, 1), (0, 1, 2, 3), 2),
        "If a = -1; b = - a; c = + b; d = + c. Then what is c? ",
        "The answer is +1.",
    ),
    "copy": ((7, 1), "Copy the following words: w7 w1 . ", "w7 w1"),
    "reverse": ((7, 1), "Reverse the following words: w7 w1 . ", "w1 w7"),
}
"""Problem, prompt and answer in the wording of the paper's appendix."""


@pytest.mark.parametrize("name", PAPER_GOLDEN)
def test_wording_of_the_paper(name):
    task = TEXT_TASKS[name](template="paper")
    problem, prompt, answer = PAPER_GOLDEN[name]
    assert task.write_prompt(problem) == prompt
    assert task.write_answer(problem) == answer
    read = task.read_answer(base.split_words(answer))
    assert read is not None
    other = TEXT_TASKS[name]()
    words = base.split_words(other.write_answer(problem))
    assert read == other.read_answer(words)


def test_problems_that_training_has_seen():
    task = TEXT_TASKS["parity"]()
    training = training_examples(task, [3, 10], size=2000)
    few, many = (validation_examples(training, n) for n in (3, 10))
    assert find_seen_share(training, few, 50) == 1
    seen = {training.problem(index) for index in range(2000)}
    share = sum(many.problem(index) in seen for index in range(50)) / 50
    assert 0 < find_seen_share(training, many, 50) == share < 1
    assert find_seen_share(training, length_examples(task, 12), 5) is None
    endless = training_examples(task, [3], size=0)
    assert find_seen_share(endless, validation_examples(endless, 3), 5) is None


@pytest.mark.parametrize("left_out", FIELDS)
def test_fields_of_a_scratchpad(left_out):
    task = TEXT_TASKS["addition"]()
    kept = [field for field in FIELDS if field != left_out]
    written = scratchpad.write_scratchpad(task.steps((9, 9)), kept)
    marks = {
        "input": "in 9, 9 ",
        "computation": "comp 9",
        "output": "out 8",
        "variable": "[ carry: 1 ]",
        "remaining": "re  + ",
    }
    assert [f for f in FIELDS if marks[f] in written] == kept
    # The last step adds the carry.
    assert written.count("#") == 1
    assert scratchpad.write_scratchpad(task.steps((9, 9)), ()) == ""


@each_task
def test_bins_are_equal_and_splits_apart(name):
    task = TEXT_TASKS[name]()
    trained = task.trained_lengths
    training = training_examples(task, trained, size=100_000)
    # 90% of each length; the published data, of all lengths together, 15,997.
    size = {"scan": 15_996}.get(name, 100_000)
    assert len(training) == size
    places = collections.Counter(
        training.bins[training.find(index)[0]] for index in range(size)
    )
    tested = [p for n in task.tested_lengths for p in task.bins_at(n)]
    assert not set(places) & set(tested)
    if name != "scan":
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


def test_validation_at_a_length_has_the_trained_bins():
    task = TEXT_TASKS["addition"]()
    training = training_examples(task, [2, 5], size=0)
    validation = validation_examples(training, 5)
    assert set(validation.bins) == {(5, 2), (2, 5), (5, 5)}
    drawn = {training.problem(index) for index in range(400)}
    assert not drawn & {validation.problem(index) for index in range(300)}


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("aligned_addition", ["653+049=2070", "9+1=01", "0+0=00"]),
        ("aligned_multiplication", ["120*35=00240", "7*05=530"]),
        ("aligned_copy", ["701=701"]),
        ("aligned_reverse", ["701=107"]),
        ("aligned_parity", ["101=110"]),
        ("marked_addition", ["^653+^049=2070", "^0+^0=00"]),
        ("reversed_addition", ["356+940=2070"]),
    ],
)
def test_coupled_positions_are_those_of_counterparts(name, texts):
    """Items of the answer meet the items that they are computed from."""
    task = TEXT_TASKS[name]()
    sampler = CoupledPositions(**WordVocabulary(task).align(task.alignment))
    for text in texts:
        prompt, answer = text.split("=")
        ids = WordVocabulary(task).tokenize(f"${text}")
        positions = np.asarray(sampler(np.array([ids])))[0].tolist()
        assert positions[0] == 0
        runs = [len(run) for run in re.split(r"[+*]", prompt)]
        expected = []
        for count in runs:
            # A mark counts as an item.
            places = range(2, count + 2)
            down = task.alignment.order == "descending"
            expected += [*(reversed(places) if down else places), 1]
        expected += range(2, len(answer) + 2)
        assert positions[1:] == expected


WITH_KINDS = [name for name in GENERATED if TEXT_TASKS[name].kinds]


@pytest.mark.parametrize("name", WITH_KINDS)
def test_kinds_take_turns_and_are_answered(name):
    task = TEXT_TASKS[name]()
    training = training_examples(task, [1, 2, 5], size=0, structured=0.5)
    evaluated = evaluation_examples(training, (5, 30), (1, 2, 5), task.kinds)
    longest = {n: examples.longest()[0] for n, examples in evaluated.items()}
    for length, examples in evaluated.items():
        named = [examples.name_kind(index) for index in range(60)]
        assert tuple(named[: len(task.kinds)]) == task.kinds
        drawn = [examples.problem(index) for index in range(60)]
        assert drawn == [examples.problem(index) for index in range(60)]
        for problem in drawn:
            prompt = task.write_prompt(problem)
            assert task.write_answer(problem) == solve(name, prompt)
            words = base.split_words(prompt)
            assert set(words) <= set(task.words)
            # Programs and positions are made for the longest problem.
            assert len(words) == len(base.split_words(longest[length][0]))


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
        assert task.write_answer(problem) == solve(
            name, task.write_prompt(problem)
        )
        if len(mixed.bins[0]) == 2:
            for number, digits in zip(
                problem, mixed.bins[index % bins], strict=True
            ):
                assert len(str(number)) == digits
        else:
            assert len(problem) == mixed.bins[index % bins][0]
        same += mixed.problem(index) == problem
    # Half of the problems, and some that are equal by chance.
    assert 0.45 < same / (400 * bins) < 0.8
    # What is evaluated does not depend on the share of training.
    first = [validation_examples(e, 6).problem(9) for e in (uniform, every)]
    assert first[0] == first[1]


@pytest.mark.parametrize(
    ("name", "text", "prompt"),
    [
        ("marked_addition", "12+345", "$ ^ 0 1 2 + ^ 3 4 5 = "),
        ("marked_addition", " 19 + 7 = ", "$ ^ 1 9 + ^ 0 7 = "),
        ("marked_addition", "$ 1 0 + 0 7 =", "$ ^ 1 0 + ^ 0 7 = "),
        ("marked_addition", "$ ^ 1 0 + ^ 9 7 =", "$ ^ 1 0 + ^ 9 7 = "),
        ("marked_addition", "000 + 000", "$ ^ 0 + ^ 0 = "),
        ("aligned_addition", "1 0 + 7", "$ 1 0 + 0 7 = "),
        ("reversed_addition", "12 + 345", "$ 2 1 0 + 5 4 3 = "),
        ("reversed_addition", "$ 3 5 6 + 9 4 0 =", "$ 3 5 6 + 9 4 0 = "),
        ("aligned_copy", "70 1", "$ 7 0 1 = "),
        ("aligned_parity", "$ 1 0 1 =", "$ 1 0 1 = "),
    ],
)
def test_problems_as_people_type_them(name, text, prompt):
    task = TEXT_TASKS[name]()
    problem = task.read_problem(text)
    assert task.write_prompt(problem) == prompt


@pytest.mark.parametrize("name", TEXT_TASKS)
def test_examples_of_what_people_type_are_problems(name):
    task = TEXT_TASKS[name]()
    assert not task.typed or task.read_problem(task.typed) is not None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("marked_addition", text) for text in ("", "12", "1.5 + 2", "1 - 2")),
        *(("marked_addition", text) for text in ("1 + 2 + 3", "-1 + 2", "a")),
        *(("aligned_parity", text) for text in ("", "$ =", "012", "1 + 1")),
        ("copy", "w1 w2"),
    ],
)
def test_what_people_type_that_is_no_problem(name, text):
    assert TEXT_TASKS[name]().read_problem(text) is None


def test_sums_are_described_as_people_write_them():
    task = TEXT_TASKS["marked_addition"]()
    for words, described in (
        ("4 2 0", "19 + 5 = 24 (right)"),
        ("4 2", "19 + 5 = 24 (wrong, it is 24)"),
        ("5 1 0", "19 + 5 = 15 (wrong, it is 24)"),
        ("4 ^ 0", None),
        ("", None),
    ):
        found = task.describe_answer((19, 5), words.split())
        assert found == described, words


def test_hints_end():
    with pytest.raises(ValueError, match=r"256 hints.* 255 digits; got 256"):
        length_examples(TEXT_TASKS["hinted_addition"](), 256).longest()


def test_addition_has_the_published_bins():
    task = TEXT_TASKS["addition"]()
    assert len(task.bins(task.trained_lengths)) == 64
    tested = [p for n in task.tested_lengths for p in task.bins_at(n)]
    assert len(tested) == len(set(tested)) == 192


def test_scan_has_the_published_sizes():
    task = TEXT_TASKS["scan"]()
    assert sum(task.count((n,)) for n in task.trained_lengths) == 17_774
    assert sum(task.count((n,)) for n in task.tested_lengths) == 3_136
    assert sum(len(pairs) for pairs in task.problems.values()) == 20_910


def test_numbers_have_no_leading_zeros_and_all_digits_come_up():
    task = TEXT_TASKS["addition"]()
    examples = training_examples(task, [1, 3], size=0)
    firsts = collections.defaultdict(collections.Counter)
    for index in range(8000):
        for number, digits in zip(
            examples.problem(index), examples.bins[index % 4], strict=True
        ):
            assert len(str(number)) == digits
            firsts[digits][str(number)[0]] += 1
    assert set(firsts[1]) == set("0123456789")
    assert set(firsts[3]) == set("123456789")
    assert min(firsts[3].values()) > 0.8 * 8000 / 9


def test_the_second_factor_is_any_number_of_two_digits():
    task = TEXT_TASKS["aligned_multiplication"]()
    examples = training_examples(task, [1, 3], size=0)
    problems = [examples.problem(index) for index in range(4000)]
    factors = collections.Counter(second for _, second in problems)
    assert set(factors) == set(range(100))
    assert max(factors.values()) < 3 * min(factors.values())
    for first, second in problems:
        words = " ".join([*str(first), "*", *f"{second:02d}"])
        assert task.fill((first, second))["prompt"] == words


WRONG = {
    "addition": ["The answer is .", "The answer is 1 x.", "The answer is 1"],
    "sort": ["The sorted list is [ w1, ].", "The sorted list is [ 7 ]."],
    "sort_multi_digit": ["The sorted list is [ w1 ]."],
    "parity": ["The answer is Yes No.", "Yes."],
    "lego": ["The answer is 1.", "The answer is +1"],
    "copy": [""],
    "aligned_addition": ["1 x", "1 + 2"],
}


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("aligned_addition", "2 0 7", "2 0 7 0"),
        ("aligned_multiplication", "2 0 7", "2 0 7 0"),
        ("reversed_addition", "2 0 7", "2 0 7 0"),
        ("hinted_addition", "h5 1 h6 8", "h1 1 h2 8"),
    ],
)
def test_every_word_of_an_aligned_answer_counts(name, first, second):
    task = TEXT_TASKS[name]()
    read = [task.read_answer(base.split_words(t)) for t in (first, second)]
    assert read[0] != read[1]
    assert None not in read


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_answer(name):
    task = TEXT_TASKS[name]()
    for text in WRONG[name]:
        assert task.read_answer(base.split_words(text)) is None, text


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("addition", "The answer is 05.", "The  answer is 5 ."),
        ("parity", "The answer is yes.", "The answer is Yes."),
        (
            "sort",
            "The sorted list is[w1 ,w2].",
            "The sorted list is [ w1, w2 ].",
        ),
    ],
)
def test_answers_that_say_the_same(name, first, second):
    task = TEXT_TASKS[name]()
    read = [task.read_answer(base.split_words(t)) for t in (first, second)]
    assert read[0] == read[1] is not None
