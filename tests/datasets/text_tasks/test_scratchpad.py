"""Scratchpads: their fields."""

from datasets.text_tasks.base import Step
from datasets.text_tasks.scratchpad import write_scratchpad


def test_fields_of_a_scratchpad():
    steps = [Step("a", "b", "c", None, "d"), Step("e", "f", "g", "h", "i")]
    fields = ("input", "variable", "remaining")
    expected = "Thinking step by step:  in a re d # in e [ h ] re i . Thus,  "
    assert write_scratchpad(steps, fields) == expected
    assert write_scratchpad(steps, ()) == ""
