import pytest

from datasets.text_tasks import TEXT_TASKS
from datasets.text_tasks.examples import length_examples
from datasets.text_tasks.judgement import judge
from datasets.text_tasks.scratchpad import FIELDS
from datasets.text_tasks.vocabulary import WordVocabulary


@pytest.mark.parametrize("fields", [(), FIELDS])
def test_verdicts(fields):
    task = TEXT_TASKS["addition"]()
    vocabulary = WordVocabulary(task, has_scratchpad=bool(fields))
    examples = length_examples(task, 6, fields=fields)

    def verdict(text, index=0, end=True):
        tokens = vocabulary.tokenize(text) + [vocabulary.end] * end
        return judge(examples, index, vocabulary, tokens)

    answers = [examples.write(examples.problem(n))[1] for n in range(40)]
    assert verdict(answers[0]) == "right"
    assert verdict("  ".join(answers[0].split())) == "right"
    assert verdict(answers[0], end=False) == "unfinished"
    said = [task.write_answer(examples.problem(n)) for n in range(40)]
    other = next(n for n in range(40) if said[n] != said[0])
    assert verdict(answers[other]) == "wrong"
    assert verdict(answers[0] + " .") == "unreadable"
    assert verdict("") == "unreadable"
    if fields:
        # Steps are not judged, but they must end.
        steps = answers[other].removesuffix(said[other])
        assert verdict(steps + said[0]) == "right"
        assert verdict(said[0]) == "unreadable"
