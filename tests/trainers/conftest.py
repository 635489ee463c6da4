"""What tests of processes share."""

import pytest

from tests.trainers.workers import Nursery


@pytest.fixture(scope="module")
def nursery():
    with Nursery() as started:
        yield started
