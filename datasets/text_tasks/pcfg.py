"""PCFG: the result of functions of strings, one inside the other.

For example:

    Solve: append reverse A1 B2 , swap C3 D4[SEP] B2 A1 D4 C3
"""

import dataclasses
import hashlib
import json
import pathlib
import string

from datasets.files import only_files
from datasets.text_tasks.base import TextTaskError
from datasets.text_tasks.finite import FiniteTask

FUNCTIONS = (
    *("append", "copy", "echo", "prepend", "remove_first", "remove_second"),
    *("repeat", "reverse", "shift", "swap_first_last"),
)
ITEMS = tuple(
    f"{letter}{number}"
    for letter in string.ascii_uppercase
    for number in range(1, 21)
)
URL = "https://github.com/i-machine-think/am-i-compositional"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PCFG(FiniteTask):
    """Functions of strings; the length counts functions.

    Args:
        template: str. Key of `templates`.
        directory: str. Directory with the files of the productivity split,
            `train.src`, `train.tgt`, `test.src` and `test.tgt`.

    Reference: Hupkes et al., 2020. https://arxiv.org/abs/1908.08351
    """

    directory: str = ""

    symbols = (*FUNCTIONS, *ITEMS, ",")
    longest_trained = 8

    def list_problems(self):
        """Returns the problems by their number of functions.

        Raises:
            TextTaskError: If a file is missing or not as expected.
        """
        problems = {}
        for split in ("train", "test"):
            sources, targets = (
                self._read(f"{split}.{side}") for side in ("src", "tgt")
            )
            if len(sources) != len(targets):
                raise TextTaskError(
                    f"{split}.src in {self._folder} has {len(sources):,} lines "
                    f"and {split}.tgt {len(targets):,}: get both from {URL}."
                )
            for pair in zip(sources, targets, strict=True):
                words = pair[0].split()
                length = sum(word in FUNCTIONS for word in words)
                problems.setdefault(length, []).append(pair)
        return problems

    @property
    def digest(self):
        """Bytes that differ where the files have other problems."""
        return hashlib.sha256(json.dumps(self.problems).encode()).digest()

    @property
    def _folder(self):
        return pathlib.Path(self.directory).expanduser()

    def _read(self, name):
        path = self._folder / name
        try:
            with open(path, encoding="utf-8", opener=only_files) as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise TextTaskError(
                f"cannot read {path} ({reason}): clone {URL} and name its "
                "folder of the productivity split of pcfgset by --data_dir."
            ) from None
        return text.splitlines()
