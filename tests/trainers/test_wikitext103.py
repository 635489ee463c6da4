"""Tokens of text: published files only, unless others are asked for."""

import numpy as np
import pytest

from tests.datasets.text.vocabularies import write_byte_pairs
from tests.trainers.toy import toy_config
from trainers.errors import ConfigError
from trainers.wikitext103 import EXPERIMENT


@pytest.fixture
def vocabulary(tmp_path):
    """The flag of a vocabulary that is not GPT-2's, and its number of ids."""
    ids = write_byte_pairs(tmp_path / "vocabulary")
    return str(tmp_path / "vocabulary"), len(ids)


def test_other_text_is_not_taken_for_the_published_one(vocabulary):
    problem = EXPERIMENT.make_problem(
        toy_config("wikitext103", files="published")
    )
    assert problem.title == "wikitext103_word_pieces"
    with pytest.raises(ConfigError) as caught:
        problem.prepare()
    for part in (
        "wiki.train.raw is not a file of WikiText-103: its SHA-1 is",
        "Other text or another vocabulary needs --files=any;",
        "python -m trainers.enwik8 --dataset=files",
    ):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_results_say_what_other_files_were(vocabulary):
    folder, size = vocabulary
    config = toy_config("wikitext103", vocabulary=folder)
    problem = EXPERIMENT.make_problem(config)
    assert problem.title == "other_text"
    problem.prepare()
    assert problem.data == {
        "text": "other",
        "vocabulary": "other",
        "vocabulary_size": size,
    }
    assert problem.note == (
        "Text: other; vocabulary: other. Losses are not comparable with "
        "published ones."
    )


def test_the_model_has_the_ids_of_the_vocabulary(vocabulary):
    folder, size = vocabulary
    model = EXPERIMENT.build_model(toy_config("wikitext103", vocabulary=folder))
    logits = model({"token_ids": np.zeros((1, 3), np.int32)})
    assert logits.shape == (1, 3, size)
    missing = toy_config("wikitext103", vocabulary=f"{folder}/none")
    with pytest.raises(ConfigError, match=r"vocab\.json .*: download"):
        EXPERIMENT.build_model(missing)
