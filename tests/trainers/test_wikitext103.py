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


def make_config(**flags):
    return toy_config("wikitext103", **{"word_pieces": 8192, **flags})


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


def test_advice_does_not_repeat_what_is_given(tmp_path):
    config = make_config(data_dir=str(tmp_path))
    with pytest.raises(
        ConfigError, match="put text into files of the names"
    ) as caught:
        EXPERIMENT.make_problem(config).prepare()
    assert "--files" not in str(caught.value)
    with pytest.raises(
        ConfigError, match="--word_pieces has no effect with --v"
    ):
        make_config(vocabulary="x", word_pieces=300)


def test_results_say_what_other_files_were(vocabulary):
    folder, size = vocabulary
    config = make_config(vocabulary=folder)
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
    model = EXPERIMENT.build_model(make_config(vocabulary=folder))
    logits = model({"token_ids": np.zeros((1, 3), np.int32)})
    assert logits.shape == (1, 3, size)
    missing = make_config(vocabulary=f"{folder}/none")
    with pytest.raises(ConfigError, match=r"vocab\.json .*: download"):
        EXPERIMENT.build_model(missing)
