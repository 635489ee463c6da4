"""Constants of the fused kernels, and their dropout of attention weights."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from keras_lengen.layers.attention.visibility import Reach

Array = jax.Array

LANES = 128
"""Width of a vector of a TPU."""

MOST_PARAMETERS = LANES
"""Largest number of parameters of a head, whose gradients fill a vector."""

_BLOCKS = {16: 512, 64: 256, MOST_PARAMETERS: 128}
"""Largest size of a block by the number of parameters that it goes up to."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """Properties of a call of attention, known when its kernels are compiled.

    Attributes:
        heads: int, number of heads of the queries.
        key_heads: int, number of heads of keys and values.
        width: int, width of the queries and keys of a head.
        value_width: int, width of the values of a head.
        tokens: int, number of queries.
        keys: int, number of keys.
        reach: `Reach`, which keys queries see, apart from padding.
        first: int, index of the first query among the keys.
        scale: float, factor of the products of queries and keys.
        soft_cap: float, limit `c` of the scores without bias,
            `c * tanh(score / c)`; `None` for no limit.
        dropout: float, dropout rate of the attention weights.
        bias: Function of the parameters of a head, positions of queries and
            positions of keys, see `BiasEncoding.bias_of_pair`; or `None`.
        parameters: int, number of parameters of the bias for each head.
        learned: bool, whether the parameters of the bias need gradients.
        interpret: bool, whether to compute without a TPU, slowly.
    """

    heads: int
    key_heads: int
    width: int
    value_width: int
    tokens: int
    keys: int
    reach: Reach
    first: int = 0
    scale: float = 1.0
    soft_cap: float | None = None
    dropout: float = 0.0
    bias: Callable[..., Any] | None = None
    parameters: int = 0
    learned: bool = False
    interpret: bool = False

    @property
    def repeats(self) -> int:
        """Number of query heads that share a head of keys."""
        return self.heads // self.key_heads

    @property
    def group(self) -> int:
        """Number of key heads in a block."""
        for group in range(1, self.key_heads):
            whole = self.key_heads % group == 0
            widths = group * self.width, group * self.value_width
            if whole and not any(width % LANES for width in widths):
                return group
        return self.key_heads

    @property
    def query_block(self) -> int:
        """Number of queries in a block."""
        return self._find_block(self.tokens)

    @property
    def key_block(self) -> int:
        """Number of keys in a block."""
        return self._find_block(self.keys)

    def _find_block(self, size: int) -> int:
        # A bias with many parameters needs many blocks of memory.
        most = next(b for n, b in _BLOCKS.items() if self.parameters <= n)
        blocks = -(-size // most)
        # Packed vectors of bfloat16 have 16 rows.
        multiple = 16 if blocks == 1 else LANES
        return -(-size // (blocks * multiple)) * multiple

    def meets(
        self, query_block: Any, key_block: Any, *, by_rank: bool = False
    ) -> Any:
        """Finds whether some query of a block sees some key of another.

        Args:
            query_block: Index of the block of queries.
            key_block: Index of the block of keys.
            by_rank: bool, whether the window counts ranks. They are nearer to
                each other than indices, so the window may reach any block.

        Returns:
            Boolean, or `True`.
        """
        reach = Reach(self.reach.causal) if by_rank else self.reach
        first = self.first + query_block * self.query_block
        first_key = key_block * self.key_block
        return reach.meets(
            (first, first + self.query_block - 1),
            (first_key, first_key + self.key_block - 1),
        )


def keeps(
    seed: Array,
    second_seed: Array,
    example: Array,
    head: Array,
    queries: Array,
    keys: Array,
    *,
    rate: float,
) -> Array:
    """Finds which attention weights dropout keeps.

    The numbers are hashes of the indices, so that the backward pass finds the
    same weights in another order.

    Args:
        seed: int32, a random number.
        second_seed: int32, another random number.
        example: int32, index of the example.
        head: int32, index of the head.
        queries: Indices of the queries, int32 `(rows, 1)`.
        keys: Indices of the keys, int32 `(1, columns)`.
        rate: float, dropout rate.

    Returns:
        Booleans `(rows, columns)`.
    """
    rows = jnp.full(queries.shape, seed, jnp.int32)
    for number in (example, head, queries):
        rows = _mix(rows ^ number) + second_seed
    numbers = _mix(_mix(rows) ^ (keys * _as_int32(0x9E3779B9)))
    # The upper 24 bits, as a number that is not negative.
    upper = jax.lax.shift_right_logical(numbers, jnp.int32(8))
    return upper >= jnp.int32(round(rate * 2**24))


def _mix(numbers: Array) -> Array:
    """Mixes the bits of int32 numbers, one to one (murmur3's finalizer)."""
    shift = jax.lax.shift_right_logical
    numbers = numbers ^ shift(numbers, jnp.full_like(numbers, 16))
    numbers = numbers * _as_int32(0x85EBCA6B)
    numbers = numbers ^ shift(numbers, jnp.full_like(numbers, 13))
    numbers = numbers * _as_int32(0xC2B2AE35)
    return numbers ^ shift(numbers, jnp.full_like(numbers, 16))


def _as_int32(number: int) -> Any:
    return np.uint32(number).astype(np.int32)
