"""Tasks in text form, by name."""

from datasets.by_name import ByName
from datasets.text_tasks.addition import Addition
from datasets.text_tasks.aligned import (
    AlignedAddition,
    AlignedCopy,
    AlignedMultiplication,
    AlignedParity,
    AlignedReverse,
    HintedAddition,
    MarkedAddition,
    ReversedAddition,
)
from datasets.text_tasks.arithmetic import (
    CarriedMultiplication,
    DigitMultiplication,
    MarkedSum,
    MultiplyAdd,
    TwoDigitMultiplication,
)
from datasets.text_tasks.base import TEMPLATES, TextTask, TextTaskError
from datasets.text_tasks.copy import (
    Copy,
    CopyRepeated,
    CopyRepeatedTwice,
    CopyReplace,
    CopyTwice,
)
from datasets.text_tasks.lego import LEGO
from datasets.text_tasks.parity import Parity
from datasets.text_tasks.pcfg import PCFG
from datasets.text_tasks.polynomial import Polynomial
from datasets.text_tasks.reverse import Reverse, ReverseAndBack, ReverseTwice
from datasets.text_tasks.scan import SCAN
from datasets.text_tasks.sort import Sort, SortMultiDigit
from datasets.text_tasks.summation import Summation

_TEXT_TASKS = {
    # Copies.
    "copy": Copy,
    "copy_twice": CopyTwice,
    "copy_repeated": CopyRepeated,
    "copy_repeated_twice": CopyRepeatedTwice,
    "copy_replace": CopyReplace,
    "reverse": Reverse,
    "reverse_twice": ReverseTwice,
    "reverse_and_back": ReverseAndBack,
    # Computations.
    "addition": Addition,
    "polynomial": Polynomial,
    "sort": Sort,
    "sort_multi_digit": SortMultiDigit,
    "summation": Summation,
    "parity": Parity,
    "lego": LEGO,
    # Answers that are aligned with their prompts.
    "aligned_addition": AlignedAddition,
    "aligned_multiplication": AlignedMultiplication,
    "aligned_copy": AlignedCopy,
    "aligned_reverse": AlignedReverse,
    "aligned_parity": AlignedParity,
    "marked_addition": MarkedAddition,
    "marked_sum": MarkedSum,
    "digit_multiplication": DigitMultiplication,
    "two_digit_multiplication": TwoDigitMultiplication,
    "carried_multiplication": CarriedMultiplication,
    "multiply_add": MultiplyAdd,
    "reversed_addition": ReversedAddition,
    "hinted_addition": HintedAddition,
    # Lists of problems.
    "scan": SCAN,
    "pcfg": PCFG,
}

TEXT_TASKS = ByName("text task", _TEXT_TASKS)

__all__ = ["TEMPLATES", "TEXT_TASKS", "TextTask", "TextTaskError"]
