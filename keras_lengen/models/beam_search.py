"""Search for the most likely sequence that continues a prompt."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_lengen.models.generator import (
    Generator,
    State,
    cast_to_int32,
    repeat_while,
)
from keras_lengen.models.token_choice import add_seen, find_largest, is_end
from keras_lengen.types import Tensor


class BeamSearch(Generator):
    """Two compiled programs that search for the most likely sequence.

    The search keeps `K = num_beams` unfinished sequences and `K` that have
    ended. In each step, every unfinished sequence is extended by every token.
    The search ends after `max_new_tokens` steps, or when no unfinished sequence
    can become more likely than one that has ended.

    Sequences are compared by their log probability, divided by a power of their
    length, relative to `N = max_new_tokens`: `(length / N) ** length_penalty`.
    The score of a sequence is `-log` of the absolute value of this quotient,
    which no penalty makes overflow. A sequence that does not exist, or has a
    token with a logit of -inf, has the log probability and the score -inf.
    Among equal scores, the sequence that ended first comes first, then the
    better one at the step before, then the lowest token id.

    The constants of a run are those of a `Generator`, with `"length_penalty"`.
    The state has the entries `"cache"`, of the prompts, and `"search"`, a dict:
    `"tokens"`, int32 `(B, K, N)`, unfinished sequences; `"chances"`, float32
    `(B, K)`, their log probabilities; `"ended"` and `"ended_scores"`, those
    that have ended; `"token"`, int32 `(B * K,)`, the newest tokens; `"step"`,
    their index; `"invalid"`, as in a `Generator`; `"cache"` of all `B * K`
    sequences; and `"seen"`, if tokens are penalized. `advance` returns a state
    with the entries `"cache"`, of the prompts, `"tokens"`, int32 `(B, N)`, and
    `"invalid"`.
    """

    def _start(
        self, constants: State, token_ids: Tensor, cache: Any = None
    ) -> State:
        features, cache = self.read_prompts(constants, token_ids, cache)
        count, beams = token_ids.shape[0], self.options.num_beams
        shape = (count, beams, self.max_new_tokens)
        empty = ops.broadcast_to(constants["end_tokens"][0], shape)
        never = ops.full((count, beams), -np.inf, dtype="float32")
        search = {
            "tokens": empty,
            # All sequences begin as the same one, which counts once.
            "chances": ops.where(ops.arange(beams) == 0, 0.0, never),
            "ended": empty,
            "ended_scores": never,
            "invalid": ops.full((count,), -1, dtype="int32"),
            "cache": keras.tree.map_structure(self._repeat, cache),
        }
        if constants["seen"] is not None:
            search["seen"] = self._repeat(constants["seen"])
        features = self._repeat(features)
        search = self._choose(constants, search, features, cast_to_int32(0))
        return {"cache": cache, "search": search}

    def _advance(self, constants: State, state: State, steps: Tensor) -> State:
        constants = self._repeat_constants(constants)

        def is_unfinished(search: State) -> Tensor:
            goes_on = ops.any(self._find_open(search))
            return ops.logical_and(search["step"] < steps, goes_on)

        def add_token(search: State) -> State:
            features, cache = self.read_token(
                constants, search["token"], search["cache"], search["step"]
            )
            search = {**search, "cache": cache}
            return self._choose(constants, search, features, search["step"] + 1)

        search = repeat_while(is_unfinished, add_token, state["search"])
        # The longest sequences end here. Ties go to the first sequence.
        scores = ops.concatenate(
            [search["ended_scores"], _score(search["chances"])], axis=1
        )
        tokens = ops.concatenate([search["ended"], search["tokens"]], axis=1)
        best = ops.reshape(ops.argmax(scores, axis=1), (-1, 1))
        return {
            "cache": state["cache"],
            "tokens": _take(tokens, ops.cast(best, "int32"))[:, 0],
            "invalid": search["invalid"],
        }

    def _find_open(self, search: State) -> Tensor:
        """Finds the rows `(B,)` whose best sequence is not yet certain."""
        # What goes on gets no more likely, and no longer than the longest.
        hope = ops.max(_score(search["chances"]), axis=1)
        better = hope > ops.max(search["ended_scores"], axis=1)
        return ops.logical_and(better, search["invalid"] < 0)

    def _choose(
        self, constants: State, state: State, features: Tensor, step: Tensor
    ) -> State:
        """Adds a token to each sequence, from `features` `(B * K, 1, M)`."""
        beams = self.options.num_beams
        logits, _, valid = self.compute_logits(constants, state, features)
        fails = ops.logical_and(
            state["chances"] > -np.inf,
            ops.logical_not(ops.reshape(valid, (-1, beams))),
        )
        fails = ops.logical_and(ops.any(fails, axis=1), self._find_open(state))
        chances = ops.log_softmax(logits, axis=-1)
        count = chances.shape[-1]
        chances = ops.expand_dims(state["chances"], -1) + ops.reshape(
            chances, (-1, beams, count)
        )
        numbers = ops.arange(count, dtype="int32")
        ends = is_end(numbers, constants["end_tokens"])

        found, parents, tokens = self._find_best(
            ops.where(ends, chances, -np.inf)
        )
        longest = self.max_new_tokens / ops.cast(step + 1, "float32")
        lost = constants["length_penalty"] * ops.log(longest)
        found = ops.concatenate(
            [state["ended_scores"], _score(found) - lost], axis=1
        )
        ended = _take(state["tokens"], parents)
        ended = _write(ended, tokens, step)
        ended = ops.concatenate([state["ended"], ended], axis=1)
        found, kept = find_largest(found, beams)

        chances, parents, tokens = self._find_best(
            ops.where(ends, -np.inf, chances)
        )
        rows = ops.arange(chances.shape[0], dtype="int32")
        rows = ops.reshape(ops.expand_dims(rows * beams, -1) + parents, (-1,))
        token = ops.reshape(tokens, (-1,))
        new = {
            "tokens": _write(_take(state["tokens"], parents), tokens, step),
            "chances": chances,
            "ended": _take(ended, kept),
            "ended_scores": found,
            "invalid": ops.where(fails, step, state["invalid"]),
            "cache": keras.tree.map_structure(
                lambda each: ops.take(each, rows, axis=0), state["cache"]
            ),
            "token": token,
            "step": step,
        }
        if "seen" in state:
            seen = ops.take(state["seen"], rows, axis=0)
            new["seen"] = add_seen(seen, token)
        return new

    def _find_best(self, chances: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Finds the most likely continuations.

        Args:
            chances: float32 `(B, K, V)`, for each sequence and next token.

        Returns:
            Log probabilities, indices of sequences, and tokens, each `(B, K)`.
        """
        _, beams, count = chances.shape
        flat = ops.reshape(chances, (-1, beams * count))
        best, indices = find_largest(flat, beams)
        return best, indices // count, indices % count

    def _repeat(self, tensor: Tensor) -> Tensor:
        """Repeats each row of the first axis, once for each sequence."""
        return ops.repeat(tensor, self.options.num_beams, axis=0)

    def _repeat_constants(self, constants: State) -> State:
        """Repeats the constants of each prompt, once for each sequence."""

        def repeat(value: Any, axes: int = 1) -> Any:
            # With fewer axes, all prompts share it.
            return keras.tree.map_structure(
                lambda each: (
                    each
                    if each is None or len(each.shape) < axes
                    else self._repeat(each)
                ),
                value,
            )

        return {
            **constants,
            "positions": repeat(constants["positions"], 2),
            "mask": repeat(constants["mask"]),
            "length": repeat(constants["length"]),
            "memory": {
                name: repeat(value, 2 if name == "memory_positions" else 1)
                for name, value in constants["memory"].items()
            },
        }


def _score(chances: Tensor) -> Tensor:
    """Scores log probabilities of sequences that are as long as possible."""
    return -ops.log(ops.abs(chances))


def _take(sequences: Tensor, indices: Tensor) -> Tensor:
    """Returns sequences `(B, K, N)` with the indices `(B, L)` on axis 1."""
    return ops.take_along_axis(sequences, ops.expand_dims(indices, -1), axis=1)


def _write(sequences: Tensor, tokens: Tensor, step: Tensor) -> Tensor:
    """Returns `sequences` `(B, K, N)` with `tokens` `(B, K)` at one step."""
    return ops.slice_update(
        sequences, (0, 0, step), ops.expand_dims(tokens, -1)
    )
