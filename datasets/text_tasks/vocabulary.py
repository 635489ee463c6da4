"""Words of a task and their ids."""

import numpy as np

from datasets.text_tasks import scratchpad
from datasets.text_tasks.base import split_words
from datasets.text_tasks.symbols import DIGITS


class WordVocabulary:
    """All words that prompts, scratchpads and answers of a task consist of.

    Ids 0, 1 and 2 are padding, the end of an answer and a word that the task
    does not have. Words are split by Python's regular expressions: those of
    TensorFlow Text find the same words, but take 20 times as long for a batch,
    and their graph takes seconds to build.

    Args:
        task: `TextTask`.
        has_scratchpad: bool. Whether answers have a scratchpad.

    Attributes:
        words: Tuple of str, by id.
        size: int. Number of ids.
        end: int. Id of the end of an answer.
        digits: List of int. Ids of the digits that the task has.
        unknown: int. Id of a word that the task does not have.
    """

    end = 1
    unknown = 2

    def __init__(self, task, has_scratchpad=False):
        known = {*task.words, *(scratchpad.WORDS if has_scratchpad else ())}
        self.words = ("[PAD]", "[END]", "[UNKNOWN]", *sorted(known))
        self.size = len(self.words)
        self._ids = {word: number for number, word in enumerate(self.words)}
        self.digits = [self._ids[word] for word in DIGITS if word in known]

    def align(self, alignment):
        """Returns an `Alignment` in ids, a dict.

        Its entries are the arguments of
        `keras_lengen.layers.CoupledPositions`.
        """
        return {
            "items": [self._ids[word] for word in alignment.items],
            "end_of_prompt": self._ids[alignment.end_of_prompt],
            "separators": [self._ids[word] for word in alignment.separators],
            "order": alignment.order,
        }

    def tokenize(self, text):
        """Returns the ids of the words of a text, a list of int."""
        return [self._ids.get(word, self.unknown) for word in split_words(text)]

    def detokenize(self, ids):
        """Returns the words before the end of an answer, a list of str."""
        ids = np.asarray(ids).tolist()
        if self.end in ids:
            ids = ids[: ids.index(self.end)]
        return [self.words[token] for token in ids]
