"""How generation chooses a token: options, and the arithmetic of logits."""

from typing import Any, NamedTuple, TypedDict

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import (
    Boolean,
    Integer,
    Number,
    OneOrMore,
    Optional,
    Seed,
)
from keras_lengen.types import BoolArray, IntArray, Tensor

RANDOM_NUMBERS = 2**30
"""How many different random numbers there are to choose a token with."""


class ChoiceOptions(TypedDict, total=False):
    """Types of the options of `generate`, for `Unpack`."""

    temperature: float
    top_k: int | None
    top_p: float | None
    repetition_penalty: float
    num_beams: int
    length_penalty: float
    end_token: Any
    seed: int | None
    return_logits: bool
    jit_compile: bool


class Options(NamedTuple):
    """Checked options; `TransformerDecoder.generate` describes them."""

    temperature: float
    top_k: int | None
    top_p: float | None
    repetition_penalty: float
    num_beams: int
    length_penalty: float
    end_tokens: tuple[int, ...]
    seed: int | None
    return_logits: bool
    jit_compile: bool


def check_options(
    output_size: int,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    repetition_penalty: float = 1.0,
    num_beams: int = 1,
    length_penalty: float = 1.0,
    end_token: Any = None,
    seed: int | None = None,
    return_logits: bool = False,
    jit_compile: bool = True,
) -> Options:
    """Checks the options of `generate` for a number of different tokens.

    Raises:
        ValueError: If an option is wrong, or has no effect beside another.
    """
    options = Options(
        temperature=Number(0).check("temperature", temperature),
        top_k=Optional(Integer(most=output_size)).check("top_k", top_k),
        top_p=Optional(Number(most=1, above=0)).check("top_p", top_p),
        repetition_penalty=Number(above=0).check(
            "repetition_penalty", repetition_penalty
        ),
        num_beams=Integer().check("num_beams", num_beams),
        length_penalty=Number(0).check("length_penalty", length_penalty),
        end_tokens=_read_end_tokens(end_token, output_size),
        seed=Seed().check("seed", seed),
        return_logits=Boolean().check("return_logits", return_logits),
        jit_compile=Boolean().check("jit_compile", jit_compile),
    )
    for name in ("top_k", "top_p"):
        value = getattr(options, name)
        if options.num_beams > 1 and value is not None:
            raise ValueError(
                f"{name}={value} samples tokens, and num_beams={num_beams} "
                "searches for the most likely sequence: leave one of them out."
            )
        if options.temperature == 0 and value not in (None, 1):
            raise ValueError(
                f"{name}={value} has no effect at temperature=0: pass a "
                f"temperature above 0, such as 1.0, or leave {name} out."
            )
    if options.num_beams == 1:
        if options.length_penalty != 1:
            raise ValueError(
                f"length_penalty={length_penalty} compares the sequences of a "
                "beam search: pass num_beams above 1, or leave it out."
            )
        return options
    if options.temperature > 0:
        raise ValueError(
            f"num_beams={num_beams} searches for the most likely sequence and "
            f"samples no tokens: pass temperature=0 instead of {temperature}."
        )
    if options.return_logits:
        raise ValueError(
            f"num_beams={num_beams} compares many sequences and keeps no "
            "logits: leave return_logits out, or call the model with the "
            "tokens that it returns."
        )
    return options


def _read_end_tokens(end_token: Any, output_size: int) -> tuple[int, ...]:
    """Reads one or several tokens; without any, there is -1, which is none."""
    tokens = Optional(OneOrMore(Integer(0, output_size - 1)))
    found = tokens.check("end_token", end_token)
    if found is None:
        return (-1,)
    return found if isinstance(found, tuple) else (found,)


def find_seen(
    token_ids: IntArray, mask: BoolArray | None, output_size: int
) -> BoolArray:
    """Finds the tokens that a text has.

    Args:
        token_ids: `(B, T)`.
        mask: `(B, T)`, true for real tokens, or `None`.
        output_size: int. Number of different tokens.

    Returns:
        bool `(B, output_size)`.
    """
    counted = token_ids < output_size
    if mask is not None:
        counted &= mask
    seen = np.zeros((len(token_ids), output_size), "bool")
    rows, columns = np.nonzero(counted)
    seen[rows, token_ids[rows, columns]] = True
    return seen


def add_seen(seen: Tensor, tokens: Tensor) -> Tensor:
    """Adds tokens `(B,)` to those that a text has, bool `(B, V)`."""
    numbers = ops.arange(seen.shape[-1], dtype="int32")
    return ops.logical_or(seen, ops.expand_dims(tokens, -1) == numbers)


def penalize(logits: Tensor, seen: Tensor, penalty: Tensor) -> Tensor:
    """Makes tokens less likely that the text already has.

    Args:
        logits: float32 `(B, V)`.
        seen: bool `(B, V)`.
        penalty: float32 scalar. Divides positive logits of these tokens, and
            multiplies negative ones.

    Returns:
        float32 `(B, V)`.

    Differs from the paper: it divides all logits, which makes tokens with
    negative ones more likely.

    Reference: Keskar et al., 2019, section 4.1.
    https://arxiv.org/abs/1909.05858
    """
    changed = ops.where(logits > 0, logits / penalty, logits * penalty)
    # What overflows is as unlikely as can be, but not forbidden as -inf is.
    seen = ops.logical_and(seen, ops.isfinite(logits))
    return ops.where(seen, ops.clip(changed, -1e30, 1e30), logits)


def is_end(tokens: Tensor, end_tokens: Tensor) -> Tensor:
    """Finds the tokens of any shape that are among `end_tokens` `(E,)`."""
    return ops.any(ops.expand_dims(tokens, -1) == end_tokens, axis=-1)


def are_valid(logits: Tensor) -> Tensor:
    """Finds rows of logits `(B, V)` from which a token can be chosen.

    Such a row has no NaN and no infinity, and a token that is not forbidden by
    a logit of -inf.

    Returns:
        bool `(B,)`.
    """
    numbers = ops.where(ops.isnan(logits), np.inf, logits)
    return ops.isfinite(ops.max(numbers, axis=-1))


def find_largest(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Finds the largest scores; among equal ones, those with lowest indices.

    Args:
        scores: float32 `(B, N)`.
        count: int. How many to find.

    Returns:
        Scores and int32 indices, each `(B, count)`.
    """
    if keras.backend.backend() == "torch":
        # Its `topk` returns any of equal numbers.
        indices = ops.argsort(-scores, axis=-1)[:, :count]
        return ops.take_along_axis(scores, indices, axis=-1), indices
    largest, indices = ops.top_k(scores, count)
    return largest, ops.cast(indices, "int32")


def sample_tokens(
    logits: Tensor,
    numbers: Tensor,
    *,
    temperature: Tensor,
    top_k: int | None,
    top_p: Tensor | None,
) -> Tensor:
    """Samples tokens by inverting the cumulative distribution.

    Args:
        logits: float32 `(B, V)`, valid.
        numbers: int32 `(B,)`, random, from 0 to `RANDOM_NUMBERS - 1`.
        temperature: float32 scalar above 0 that divides the logits.
        top_k: int or `None`. Number of most likely tokens to sample from.
        top_p: float or `None`. Probability of the most likely tokens to
            sample from.

    Returns:
        int32 `(B,)`.
    """
    if top_k is not None or top_p is not None:
        ordered, _ = ops.top_k(logits, top_k or logits.shape[-1])
        count = ordered.shape[-1]
        if top_p is not None:
            sums = _sum_probabilities(ordered, temperature)
            # A set that rounding puts below `top_p` needs no other token.
            goals = top_p * (1 - 1e-6) * ops.cast(sums[:, -1:], "float32")
            below = ops.cast(sums < ops.cast(goals, "int32"), "int32")
            count = 1 + ops.sum(below, axis=-1, keepdims=True)
            least = ops.take_along_axis(ordered, count - 1, axis=-1)
        else:
            least = ordered[:, -1:]
        logits = _keep_likeliest(logits, least, count)
    sums = _sum_probabilities(logits, temperature)
    total = sums[:, -1:]
    excess = ops.cast(total - RANDOM_NUMBERS, "float32") / RANDOM_NUMBERS
    goals = ops.expand_dims(numbers, -1)
    goals = goals + ops.cast(ops.cast(goals, "float32") * excess, "int32")
    goals = ops.minimum(goals, total - 1)
    # The sum passes the goal at a token whose probability is above 0.
    return ops.sum(ops.cast(sums <= goals, "int32"), axis=-1)


def _keep_likeliest(
    logits: Tensor, least: Tensor, count: int | Tensor
) -> Tensor:
    """Forbids all but the most likely tokens; of equal ones, the last.

    Args:
        logits: float32 `(B, V)`.
        least: float32 `(B, 1)`, the smallest logit to keep.
        count: int, or int32 `(B, 1)`, number of tokens to keep.

    Returns:
        float32 `(B, V)`, -inf for the other tokens.
    """
    above, equal = logits > least, logits == least
    room = count - ops.sum(ops.cast(above, "int32"), axis=-1, keepdims=True)
    numbers = ops.cumsum(ops.cast(equal, "int32"), axis=-1)
    kept = ops.logical_or(above, ops.logical_and(equal, numbers <= room))
    return ops.where(kept, logits, -np.inf)


def _sum_probabilities(logits: Tensor, temperature: Tensor) -> Tensor:
    """Sums up the probabilities of tokens.

    Sums of integers are exact. Those of floating-point numbers may decrease
    under XLA, which adds in another order for each sum.

    Args:
        logits: float32 `(B, V)`, valid.
        temperature: float32 scalar above 0 that divides the logits.

    Returns:
        int32 `(B, V)`, cumulative sums in units of `1 / RANDOM_NUMBERS`.
    """
    # Logits become at most 0: divided by a small temperature, they may then
    # overflow to the probability 0, but never to NaN.
    logits = logits - ops.max(logits, axis=-1, keepdims=True)
    # Infinity divided by the largest temperatures is NaN in JAX.
    weights = ops.where(logits > -np.inf, ops.exp(logits / temperature), 0.0)
    shares = weights / ops.sum(weights, axis=-1, keepdims=True)
    shares = shares * RANDOM_NUMBERS
    whole = ops.floor(shares)
    # Ten bits more, because rounding would add up over many tokens.
    rest = ops.floor((shares - whole) * 1024)
    whole, rest = (
        ops.cumsum(ops.cast(part, "int32"), axis=-1) for part in (whole, rest)
    )
    return whole + rest // 1024
