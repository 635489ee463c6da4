"""Algorithmic tasks drawn by JAX only, by the names of `datasets.tasks`."""

from datasets.jax_tasks.base import JaxTask
from datasets.jax_tasks.bucket_sort import BucketSort
from datasets.jax_tasks.even_pairs import EvenPairs
from datasets.jax_tasks.missing_duplicate_string import MissingDuplicateString
from datasets.jax_tasks.reverse_string import ReverseString

JAX_TASKS = {
    "even_pairs": EvenPairs(),
    "reverse_string": ReverseString(),
    "missing_duplicate_string": MissingDuplicateString(),
    "bucket_sort": BucketSort(),
}

__all__ = ["JAX_TASKS", "JaxTask"]
