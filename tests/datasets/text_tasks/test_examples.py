from datasets.text_tasks import TEXT_TASKS
from datasets.text_tasks.examples import (
    find_seen_share,
    length_examples,
    training_examples,
    validation_examples,
)


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


def test_validation_at_a_length_has_the_trained_bins():
    task = TEXT_TASKS["addition"]()
    training = training_examples(task, [2, 5], size=0)
    validation = validation_examples(training, 5)
    assert set(validation.bins) == {(5, 2), (2, 5), (5, 5)}
    for index in range(300):
        digits = tuple(len(str(term)) for term in validation.problem(index))
        assert digits == validation.bins[index % 3]


def test_a_share_of_training_has_structure():
    task = TEXT_TASKS["marked_addition"]()
    plain, mixed, every = (
        training_examples(task, [30], size=0, structured=share)
        for share in (0.0, 0.5, 1.0)
    )
    equal = sum(mixed.problem(n) == every.problem(n) for n in range(400))
    assert 150 < equal < 250
    first = [validation_examples(e, 30).problem(9) for e in (plain, every)]
    assert first[0] == first[1]
