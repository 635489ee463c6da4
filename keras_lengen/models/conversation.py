"""Generation that continues across calls."""

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple, Unpack, cast

import keras
import numpy as np
from keras import ops

from keras_lengen.checks.arguments import Integer, check_keys
from keras_lengen.layers.positions.placing import place_tokens
from keras_lengen.layers.positions.token_positions import NEW
from keras_lengen.layers.real_tokens import number_real_tokens
from keras_lengen.models.base import Transformer, convert_numbers
from keras_lengen.models.generation import (
    Run,
    check_arguments,
    check_streamed,
    find_last,
    make_run,
)
from keras_lengen.models.token_choice import ChoiceOptions, find_seen
from keras_lengen.types import (
    Array,
    BoolArray,
    Positions,
    Tensor,
    TensorLike,
)


class _Text(NamedTuple):
    """The tokens of a conversation.

    Attributes:
        token_ids: int32 `(B, max_length)`, `NEW` for tokens to come.
        mask: bool of the same shape, false for padding.
        length: int. Number of tokens so far, with padding.
        positions: List of the positions of the tokens for each layer.
    """

    token_ids: Array
    mask: Array
    length: int
    positions: list[Positions]


class Conversation:
    """A text of alternating prompts and generated tokens.

    `TransformerDecoder.start_conversation` makes it. Every call of `generate`
    or `stream` continues where the last one ended. The model does not compute
    earlier tokens again, because the conversation keeps their keys and values;
    with a sliding window, it computes them again after a call in which rows
    ended before others. The result is the same as generating from the whole
    text at once. The answer of a beam search is computed a second time in the
    next call.

    Positions are drawn once for all `max_length` tokens, at the first call.
    Encodings and samplers that depend on the length of the sequence use
    `max_length`. Samplers that read token ids number the tokens of each call
    after those of earlier calls, which keep their positions.

    The weights of the model must not change between calls.

    `copy.copy` and `copy.deepcopy` make a branch: a conversation with the same
    model and text, which goes on without the other. A pickled conversation
    contains its model. A stream goes on only in the conversation that began it.

    Args:
        model: `TransformerDecoder` without cross-attention.
        max_length: int, at least 1. Largest number of tokens, including
            padding.
        positions: Positions of the tokens of each row without padding,
            `(max_length,)` or `(B, max_length)`; `None`: those of the sampler.

    Attributes:
        length: int. Number of tokens so far, including the padding of prompts
            and the padding after end tokens while other rows continue.

    Raises:
        ValueError: If an argument is out of range, there are too few
            positions, or the model has cross-attention.

    Example:

    >>> import numpy as np
    >>> from keras_lengen.layers import RandomizedRoPE
    >>> from keras_lengen.models import TransformerDecoder
    >>> model = TransformerDecoder(
    ...     vocabulary_size=256, num_layers=1, num_heads=4, model_dim=32,
    ...     encoding=RandomizedRoPE(max_position=1024))
    >>> conversation = model.start_conversation(max_length=50)
    >>> conversation.generate(np.array([[72, 101, 108, 108, 111]]), 3).shape
    (1, 3)
    >>> conversation.generate(np.array([[89, 101, 115]]), 4).shape
    (1, 4)
    >>> conversation.length
    15
    """

    def __init__(
        self,
        model: Transformer,
        *,
        max_length: int,
        positions: TensorLike | None = None,
    ) -> None:
        if model.cross_attention:
            raise ValueError(
                "a conversation has no memory to attend to: make the model "
                "without cross_attention, or call `generate`."
            )
        self.max_length = Integer().check("max_length", max_length)
        if positions is None:
            for encoding in model.list_position_encodings():
                encoding.check_length(self.max_length)
        self.model = model
        self.length = 0
        self._given = positions
        self._text: _Text | None = None
        self._drawn: list[Positions] = []
        self._cache: Any = None
        # Number of tokens in the cache: the model reads a token only to
        # generate the next one.
        self._cached = 0
        # The run whose stream may go on.
        self._run: Run | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Compiled programs can be neither copied nor saved.
        return {**self.__dict__, "_run": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> "Conversation":
        # What changes is replaced and not edited, and the model is shared.
        return copy.copy(self)

    def generate(
        self,
        inputs: Any,
        max_new_tokens: int,
        **options: Unpack[ChoiceOptions],
    ) -> Array | tuple[Array, Array]:
        """Adds a prompt to each row, and generates the tokens that follow.

        Args:
            inputs: Token ids `(B, T)`, or a dict of `"token_ids"` and
                optionally `"lengths"` or `"padding_mask"`, as for
                `TransformerDecoder.generate`, at least one token in each row.
                `B` is the same in all calls. A row that ended at an end token
                continues after it.
            max_new_tokens: int, at least 1. Number of tokens to generate.
            **options: Options of `TransformerDecoder.generate`.

        Returns:
            What `TransformerDecoder.generate` returns.

        Raises:
            ValueError: If an argument is out of range, the conversation
                becomes longer than `max_length`, or logits are NaN or
                infinite. The conversation is then as before.
        """
        run, text = self._prepare(inputs, max_new_tokens, options)
        state = run.finish()
        tokens = ops.convert_to_numpy(state["tokens"])
        self._record(run, text, tokens, state["cache"])
        if "logits" not in state:
            return tokens
        return tokens, ops.convert_to_numpy(state["logits"])

    def stream(
        self,
        inputs: Any,
        max_new_tokens: int,
        **options: Unpack[ChoiceOptions],
    ) -> Iterator[Array]:
        """Generates the same tokens as `generate`, one at a time.

        The conversation contains the tokens that were read from the iterator.
        The next call need not wait until all of them are read.

        Args:
            inputs: Prompts, as for `generate`.
            max_new_tokens: int, at least 1. Largest number of tokens.
            **options: Options of `TransformerDecoder.stream`.

        Returns:
            Iterator over int32 arrays `(B,)`.

        Raises:
            ValueError: As `generate`; and when the iterator is read after
                another call.
        """
        check_streamed(options)
        run, text = self._prepare(inputs, max_new_tokens, options)
        self._run = run
        return self._stream(run, text)

    def _stream(self, run: Run, text: _Text) -> Iterator[Array]:
        states = run.states()
        for count in range(1, self.max_length):
            if self._run is not run:
                raise ValueError(
                    "the conversation went on in another call: read a stream "
                    "before the next call, or leave the rest of it."
                )
            state = next(states, None)
            if state is None:
                return
            tokens = ops.convert_to_numpy(state["tokens"])[:, :count]
            self._record(run, text, tokens, state["cache"])
            yield tokens[:, -1]

    def _prepare(
        self, inputs: Any, max_new_tokens: int, options: ChoiceOptions
    ) -> tuple[Run, _Text]:
        """Checks the arguments and prepares a run.

        Returns:
            Tuple of the run and of the text with the prompts.
        """
        model = self.model
        checked = check_arguments(model, max_new_tokens, options)
        inputs = convert_numbers(inputs)
        if isinstance(inputs, dict):
            known = {"token_ids", "lengths", "padding_mask"}
            check_keys(inputs, known, "inputs of a conversation")
        inputs = model._unpack(inputs)
        prompts, mask = inputs["token_ids"], model.padding_mask(inputs)
        last = find_last(model, prompts, mask)
        text = self._add_prompts(prompts, mask, max_new_tokens)
        cached = self._cached
        constants = {
            "positions": text.positions,
            "mask": None if text.mask.all() else text.mask,
            "length": self.max_length,
            "first": cached or None,
            "last": last + (self.length - cached),
            "memory": model.memory(inputs),
        }
        unread = text.token_ids[:, cached : text.length]
        seen = None
        if checked.repetition_penalty != 1:
            seen = find_seen(
                text.token_ids[:, : text.length],
                text.mask[:, : text.length],
                cast(int, model.output_size),
            )
        run = make_run(
            model,
            ops.convert_to_tensor(unread),
            constants,
            max_new_tokens,
            checked,
            slots=self.max_length,
            seen=seen,
            cache=self._cache,
        )
        return run, text

    def _add_prompts(
        self, prompts: Tensor, mask: Tensor | None, max_new_tokens: int
    ) -> _Text:
        """Returns the text with prompts `(B, T)`, whose padding `mask` says."""
        count, tokens = prompts.shape
        start, end = self.length, self.length + tokens
        if end + max_new_tokens > self.max_length:
            raise ValueError(
                f"the conversation has {start} tokens of max_length="
                f"{self.max_length}: {tokens} more and max_new_tokens="
                f"{max_new_tokens} do not fit. Start a conversation with a "
                "larger max_length, or generate fewer tokens."
            )
        shape = (count, self.max_length)
        if self._text is None:
            token_ids, real = np.full(shape, NEW, "int32"), np.ones(shape, bool)
            self._drawn = self._draw(token_ids)
        elif len(self._text.token_ids) == count:
            token_ids, real = (
                self._text.token_ids.copy(),
                self._text.mask.copy(),
            )
        else:
            raise ValueError(
                "token_ids must have a row for each of the "
                f"{len(self._text.token_ids)} rows of the conversation; got "
                f"{count}."
            )
        token_ids[:, start:end] = ops.convert_to_numpy(prompts)
        if mask is not None:
            real[:, start:end] = ops.convert_to_numpy(mask)
        return _Text(token_ids, real, end, self._place(token_ids, real))

    def _draw(self, token_ids: Array) -> list[Positions]:
        """Draws the positions of all tokens, for each layer."""
        model = self.model
        if self._given is None:
            drawn = model.sample_positions(
                {"token_ids": ops.convert_to_tensor(token_ids)}, training=False
            )
        else:
            drawn = model._check_positions(
                self._given, keras.KerasTensor(token_ids.shape)
            )
        drawn = model.by_layer(drawn)
        for encoding, of_layer in zip(
            model.list_encodings(), drawn, strict=True
        ):
            encoding.check_positions(of_layer)
        return drawn

    def _place(self, token_ids: Array, real: Array) -> list[Positions]:
        """Gives the positions to the real tokens, for each layer."""
        mask = None if real.all() else ops.convert_to_tensor(real)
        old = ops.arange(self.max_length) < self._cached

        def place(drawn: Positions, layer: int) -> Positions:
            encoding = self.model.list_position_encodings()[layer]
            if self._given is None and encoding.sampler.reads_tokens:
                found = place_tokens(
                    encoding.sampler,
                    ops.convert_to_tensor(token_ids),
                    mask=mask,
                    training=False,
                )
                if self._text is None:
                    return found
                return ops.where(old, self._text.positions[layer], found)
            if mask is None:
                return drawn
            return keras.tree.map_structure(
                lambda axis: number_real_tokens(axis, mask), drawn
            )

        placed: dict[int, Positions] = {}
        for layer, drawn in enumerate(self._drawn):
            if id(drawn) not in placed:
                placed[id(drawn)] = place(drawn, layer)
        return [placed[id(drawn)] for drawn in self._drawn]

    def _record(self, run: Run, text: _Text, tokens: Array, cache: Any) -> None:
        """Adds generated tokens `(B, N)` to the text.

        Args:
            run: The run that generated them.
            text: Text with the prompts.
            tokens: int32 `(B, N)`, the tokens from the first one on.
            cache: Caches of all tokens but the last one; of a beam search, of
                the prompts.
        """
        ends = np.isin(
            tokens, ops.convert_to_numpy(run.constants["end_tokens"])
        )
        real: BoolArray = np.cumsum(ends, axis=1) - ends == 0
        # Where all sequences have ended, there is room for the next prompts.
        count = int(real.any(axis=0).sum())
        new = slice(text.length, text.length + count)
        token_ids, mask = text.token_ids.copy(), text.mask.copy()
        token_ids[:, new] = tokens[:, :count]
        mask[:, new] = real[:, :count]
        self._run = run
        self.length = text.length + count
        self._text = text._replace(
            token_ids=token_ids, mask=mask, length=self.length
        )
        self._cache = cache
        searched = run.generator.options.num_beams > 1
        self._cached = text.length if searched else self.length - 1
        rings = any(
            block.attention_layer.has_rolling_cache
            for block in self.model.blocks
        )
        if rings and not searched and not real[:, :count].all():
            # What followed an end token has replaced keys that are needed.
            self._cache, self._cached = None, 0
