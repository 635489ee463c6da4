import pytest

from datasets.text_tasks import TEXT_TASKS
from datasets.text_tasks.examples import length_examples
from datasets.text_tasks.judgement import judge
from datasets.text_tasks.scratchpad import FIELDS
from datasets.text_tasks.vocabulary import WordVocabulary


@pytest.mark.parametrize("fields", [(), FIELDS])
def test_verdicts(fields):
    task = TEXT_TASKS["parity"]()
    vocabulary = WordVocabulary(task, has_scratchpad=bool(fields))
    examples = length_examples(task, 9, fields=fields)

    def verdict(text, end=True):
        tokens = vocabulary.tokenize(text) + [vocabulary.end] * end
        return judge(examples, 0, vocabulary, tokens)

    answer = examples.write(examples.problem(0))[1]
    steps = answer.removesuffix(task.write_answer(examples.problem(0)))
    assert verdict(answer) == "right"
    assert verdict(answer, end=False) == "unfinished"
    # Steps are not judged, but they must end.
    others = {verdict(f"{steps}The answer is {x}.") for x in ("Yes", "No")}
    assert others == {"right", "wrong"}
    assert verdict(answer + " .") == verdict("") == "unreadable"
    assert (verdict("The answer is Yes.") == "unreadable") == bool(fields)
