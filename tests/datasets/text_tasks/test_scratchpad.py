"""Scratchpads: their fields."""

import pytest

from datasets.text_tasks import TEXT_TASKS, scratchpad
from datasets.text_tasks.scratchpad import FIELDS


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
