"""Tokens of text: published files only, unless others are asked for."""

import numpy as np
import pytest

from tests.datasets.text.vocabularies import write_byte_pairs
from tests.trainers.toy import toy_config
from trainers.errors import ConfigError
from trainers.wikitext103 import EXPERIMENT


def make_config(**flags):
    return toy_config("wikitext103", **{"word_pieces": 8192, **flags})


def test_other_text_is_not_taken_for_the_published_one():
    problem = EXPERIMENT.make_problem(
        toy_config("wikitext103", files="published")
    )
    assert problem.title == "wikitext103_word_pieces"
    message = r"wiki\.train\.raw is not a file of WikiText-103: .*--files=any"
    with pytest.raises(ConfigError, match=message):
        problem.prepare()


def test_flags_that_cannot_be():
    with pytest.raises(ConfigError, match="--word_pieces has no effect with"):
        make_config(vocabulary="x", word_pieces=300)


def test_the_vocabulary_of_a_folder(tmp_path):
    folder, size = str(tmp_path), len(write_byte_pairs(tmp_path))
    config = make_config(vocabulary=folder)
    problem = EXPERIMENT.make_problem(config)
    assert problem.title == "other_text"
    problem.prepare()
    assert problem.data["text"] == problem.data["vocabulary"] == "other"
    assert problem.data["vocabulary_size"] == size
    model = EXPERIMENT.build_model(config)
    logits = model({"token_ids": np.zeros((1, 3), np.int32)})
    assert logits.shape == (1, 3, size)
    missing = make_config(vocabulary=f"{folder}/none")
    with pytest.raises(ConfigError, match=r"vocab\.json .*: download"):
        EXPERIMENT.build_model(missing)
