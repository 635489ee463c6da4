"""Algorithmic tasks, by name."""

from datasets.by_name import ByName
from datasets.tasks.base import Task
from datasets.tasks.binary_addition import BinaryAddition
from datasets.tasks.binary_majority import BinaryMajority
from datasets.tasks.binary_multiplication import BinaryMultiplication
from datasets.tasks.bucket_sort import BucketSort
from datasets.tasks.common_words import CommonWords
from datasets.tasks.compute_sqrt import ComputeSqrt
from datasets.tasks.cycle_navigation import CycleNavigation
from datasets.tasks.duplicate_string import DuplicateString
from datasets.tasks.even_pairs import EvenPairs
from datasets.tasks.flip_flop import FlipFlop
from datasets.tasks.frequent_words import FrequentWords
from datasets.tasks.group_words import WordsA5, WordsS3, WordsS5
from datasets.tasks.indirect_indexing import IndirectIndexing
from datasets.tasks.local_count import LocalCount
from datasets.tasks.majority import Majority
from datasets.tasks.missing_duplicate_string import MissingDuplicateString
from datasets.tasks.modular_arithmetic import ModularArithmetic
from datasets.tasks.modular_arithmetic_brackets import (
    ModularArithmeticBrackets,
)
from datasets.tasks.mqar import MQAR
from datasets.tasks.mqmtar import MQMTAR
from datasets.tasks.needle import Needle
from datasets.tasks.odds_first import OddsFirst
from datasets.tasks.parity_check import ParityCheck
from datasets.tasks.repeat_copy import RepeatCopy
from datasets.tasks.reverse_string import ReverseString
from datasets.tasks.solve_equation import SolveEquation
from datasets.tasks.stack_manipulation import StackManipulation
from datasets.tasks.two_back import TwoBack
from datasets.tasks.unique_copy import UniqueCopy
from datasets.tasks.unique_sort import UniqueSort
from datasets.tasks.variable_tracking import VariableTracking

_TASKS = {
    # The Chomsky hierarchy benchmark: regular.
    "even_pairs": EvenPairs(),
    "modular_arithmetic": ModularArithmetic(),
    "parity_check": ParityCheck(),
    "cycle_navigation": CycleNavigation(),
    # Deterministic context-free.
    "stack_manipulation": StackManipulation(),
    "reverse_string": ReverseString(),
    "modular_arithmetic_brackets": ModularArithmeticBrackets(),
    "solve_equation": SolveEquation(),
    # Context-sensitive.
    "duplicate_string": DuplicateString(),
    "missing_duplicate_string": MissingDuplicateString(),
    "odds_first": OddsFirst(),
    "binary_addition": BinaryAddition(),
    "binary_multiplication": BinaryMultiplication(),
    "compute_sqrt": ComputeSqrt(),
    "bucket_sort": BucketSort(),
    # Memory and state tracking.
    "flip_flop": FlipFlop(),
    "words_s3": WordsS3(),
    "words_a5": WordsA5(),
    "words_s5": WordsS5(),
    "two_back": TwoBack(),
    "local_count": LocalCount(),
    # The suite of C-RASP, with parity_check and binary_addition.
    "binary_majority": BinaryMajority(),
    "majority": Majority(),
    "unique_copy": UniqueCopy(),
    "repeat_copy": RepeatCopy(),
    "unique_sort": UniqueSort(),
    # Recall.
    "mqar": MQAR(),
    "mqmtar": MQMTAR(),
    "needle": Needle(),
    "indirect_indexing": IndirectIndexing(),
    "variable_tracking": VariableTracking(),
    # Counting.
    "common_words": CommonWords(),
    "frequent_words": FrequentWords(),
}

TASKS = ByName("task", _TASKS)

__all__ = ["TASKS", "Task"]
