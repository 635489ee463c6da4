"""Causal Transformer over token ids, with generation."""

from collections.abc import Iterator, Sequence
from typing import Any

import keras
from keras import ops

from keras_lengen.checks.arguments import Optional, OrDefault
from keras_lengen.checks.constructors import argument
from keras_lengen.checks.guards import mark_by_positions
from keras_lengen.checks.inputs import (
    check_rank,
    guard_same_size,
    read_mask,
    read_segment_ids,
)
from keras_lengen.layers.documents import Documents, find_documents
from keras_lengen.layers.encodings.base import (
    EncodingArgument,
    PositionalEncoding,
)
from keras_lengen.layers.encodings.copies import copy_encoding
from keras_lengen.layers.positions.placing import place_tokens
from keras_lengen.layers.transformer import check_cross_encoding
from keras_lengen.models.base import Inputs, Transformer
from keras_lengen.models.conversation import Conversation
from keras_lengen.models.generation import generate, stream
from keras_lengen.types import Array, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_lengen")
class TransformerDecoder(Transformer):
    """A causal Transformer that maps token ids to next-token logits.

    Each token attends only to itself and earlier tokens. The logits of a token
    therefore do not change when the sequence grows, unless positions or the
    encoding depend on the length of the sequence. In that case pass
    `"positions"` and `"reference_length"`.

    Args:
        vocabulary_size: int, at least 1. Number of token ids.
        output_size: int, at least 1. Number of classes; `None`:
            `vocabulary_size`.
        cross_attention: bool. Whether blocks also attend to `"memory"`.
        cross_encoding: `PositionalEncoding` of the cross-attention; `None`: no
            positional encoding there.
        **kwargs: Arguments of `TransformerEncoder`.

    Call arguments:
        inputs: Integer token ids `(B, T)`, or a dict as for
            `TransformerEncoder`. With cross-attention, the dict also has
            `"memory"`, `(B, S, M)`, and optionally `"memory_mask"`, bool
            `(B, S)`, true for real tokens, and `"memory_positions"`, `(S,)` or
            `(B, S)`; without these, the sampler of `cross_encoding` draws
            them. With `"segment_ids"`, it also has `"memory_segment_ids"`,
            integers `(B, S)`: tokens attend to the part of the memory with
            their own number.
        training: bool. Whether to apply dropout and to draw positions as in
            training.

    Returns:
        float32 logits `(B, T, output_size)`.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    >>> import numpy as np
    >>> from keras_lengen.layers import RandomizedRoPE
    >>> from keras_lengen.models import TransformerDecoder
    >>> model = TransformerDecoder(
    ...     vocabulary_size=256, num_layers=2, num_heads=4, model_dim=32,
    ...     encoding=RandomizedRoPE(max_position=1024))
    >>> prompts = np.array([[72, 101, 108, 108, 111], [72, 105, 0, 0, 0]])
    >>> inputs = {"token_ids": prompts, "lengths": np.array([5, 2])}
    >>> model.generate(inputs, 3).shape
    (2, 3)

    Reference: Kazemnejad et al., 2023, appendix D.
    https://arxiv.org/abs/2305.19466
    """

    causal = True

    output_size: OrDefault[int] = argument(default=None)
    cross_attention: bool = argument(default=False)
    cross_encoding: PositionalEncoding | None = argument(
        Optional(EncodingArgument()), default=None
    )

    def assign(self, values: dict[str, Any]) -> None:
        values = dict(values)
        if values["output_size"] is None:
            values["output_size"] = values["vocabulary_size"]
        declared = self.arguments()["cross_encoding"]
        given = declared.check("cross_encoding", values["cross_encoding"])
        values["cross_encoding"] = (
            None if given is None else copy_encoding(given)
        )
        super().assign(values)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cross_encoding(self.cross_encoding, self.cross_attention)
        if self.cross_attention:
            self._further_inputs = _MEMORY
        self._make_layers(
            cross_attention=self.cross_attention,
            cross_encoding=self.cross_encoding,
        )

    def memory(
        self, inputs: Inputs, training: bool | None = None
    ) -> dict[str, Any]:
        if not self.cross_attention:
            return {}
        memory = {name: inputs.get(name) for name in _MEMORY}
        if memory["memory"] is None:
            raise ValueError(
                "inputs of a decoder with cross_attention must have "
                '`"memory"`, the sequence to attend to.'
            )
        states = memory["memory"]
        check_rank("memory", states, (3,), f"(B, S, {self.model_dim})")
        if states.shape[-1] != self.model_dim:
            raise ValueError(
                f"memory must have the width of the model, {self.model_dim}; "
                f"got {states.shape[-1]}."
            )
        if states.shape[1] == 0:
            raise ValueError(
                "memory must have at least one token to attend to; got shape "
                f"{tuple(states.shape)}."
            )
        states = guard_same_size(
            states, 0, memory=states, token_ids=inputs["token_ids"]
        )
        memory["memory_mask"], states = read_mask(
            memory["memory_mask"], states, name="memory_mask"
        )
        documents, states = self._pair_documents(
            inputs,
            memory.pop("memory_segment_ids"),
            memory["memory_mask"],
            states,
        )
        memory["memory_documents"] = documents
        memory["memory"] = ops.cast(states, self.compute_dtype)
        encoding, positions = self.cross_encoding, memory["memory_positions"]
        if encoding is None:
            return memory
        if positions is None:
            encoding.sampler.check_inputs(states)
            positions = place_tokens(
                encoding.sampler,
                states,
                mask=memory["memory_mask"],
                documents=None if documents is None else documents[1],
                training=training,
            )
        else:
            positions = encoding.given_positions(
                positions, states, name="memory_positions"
            )
        memory["memory"] = mark_by_positions(memory["memory"], positions)
        return {**memory, "memory_positions": positions}

    def _pair_documents(
        self,
        inputs: Inputs,
        segment_ids: TensorLike | None,
        mask: Tensor | None,
        states: Tensor,
    ) -> tuple[tuple[Documents, Documents] | None, Tensor]:
        """Finds the documents of the tokens and those of the memory.

        Args:
            inputs: Dict of checked inputs.
            segment_ids: Value of the input `"memory_segment_ids"`.
            mask: Boolean tensor `(B, S)`, true for real tokens, or `None`.
            states: `(B, S, M)`, the memory.

        Returns:
            Pair of the documents, or `None`, and the guarded memory.
        """
        own = self.input_name("segment_ids")
        if (segment_ids is None) != (inputs.get("segment_ids") is None):
            raise ValueError(
                f"packed rows need both {own} and "
                f"{self.memory_segment_ids}, by which tokens find their "
                "document in the memory."
            )
        documents = self.find_documents(inputs, numbered=False)
        if documents is None:
            return None, states
        segment_ids, states = read_segment_ids(
            segment_ids, states, name=self.memory_segment_ids
        )
        return (
            documents,
            find_documents(segment_ids, mask, numbered=False),
        ), states

    memory_segment_ids = "memory_segment_ids"
    """Name of the input of the memory's documents, for error messages."""

    def generate(
        self,
        inputs: Any,
        max_new_tokens: int,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        repetition_penalty: float = 1.0,
        num_beams: int = 1,
        length_penalty: float = 1.0,
        end_token: int | Sequence[int] | None = None,
        seed: int | None = None,
        return_logits: bool = False,
        jit_compile: bool = True,
    ) -> Any:
        """Generates the tokens that follow the prompts.

        Each token is computed once, because the keys and values of earlier
        tokens are cached. Positions are drawn once, for the prompt and the new
        tokens together. Encodings that depend on the sequence length use the
        length of both together. A program is compiled and kept for each shape
        of the prompts and each number of new tokens, so pad prompts to a few
        lengths. Among equally likely tokens, the one with the lowest id
        comes first.

        Args:
            inputs: Prompts, in the form of the inputs of a call. Padding may
                be at either end. `"positions"` include those of the new
                tokens: `(T + max_new_tokens,)` or `(B, T + max_new_tokens)`.
            max_new_tokens: int, at least 1. Number of tokens to generate.
            temperature: float, at least 0. Divides the logits before a token
                is sampled; 0: always choose the most likely token, as the
                smallest temperatures do.
            top_k: int from 1 to `output_size`. Sample only from this number of
                most likely tokens; `None`: from all tokens. Numbers above 1
                need a temperature above 0.
            top_p: float in `(0, 1]`. Sample only from the smallest set of most
                likely tokens whose probabilities add up to at least this
                number, to a millionth of it; `None`: from all tokens. Numbers
                below 1 need a temperature above 0.
            repetition_penalty: float above 0. Divides the positive logits and
                multiplies the negative logits of tokens that the prompt or the
                new tokens already have, as CTRL does; 1: no penalty.
            num_beams: int, at least 1. Number of sequences that a beam search
                compares; 1: no search. Numbers above 1 need `temperature=0` and
                no `return_logits`.
            length_penalty: float, at least 0. A beam search returns the
                sequence with the largest log probability divided by
                `length ** length_penalty`; 0: the most likely sequence.
            end_token: int from 0 to `output_size - 1`, or a list of these. Id
                of the token that ends a sequence; in a list, each id does. The
                first one fills the rest of the row. `None`: no sequence ends
                early.
            seed: int from 0 to `2**31 - 1`. Seed for sampling tokens; `None`:
                a random seed.
            return_logits: bool. Whether to return also the logits of the new
                tokens.
            jit_compile: bool. Whether XLA compiles the programs.

        Returns:
            int32 array `(B, max_new_tokens)`. If `return_logits`, a tuple of
            this array and float32 logits `(B, max_new_tokens, output_size)`,
            which are zero for tokens after all sequences have ended.

        Raises:
            ValueError: If an argument is out of range, there are not enough
                positions, or the logits of a sequence that has not ended are
                NaN or infinite. A logit of -inf forbids a token.
        """
        return generate(
            self,
            inputs,
            max_new_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            repetition_penalty=repetition_penalty,
            num_beams=num_beams,
            length_penalty=length_penalty,
            end_token=end_token,
            seed=seed,
            return_logits=return_logits,
            jit_compile=jit_compile,
        )

    def stream(
        self, inputs: Any, max_new_tokens: int, **kwargs: Any
    ) -> Iterator[Array]:
        """Generates the same tokens as `generate`, one at a time.

        Args:
            inputs: Prompts, as for `generate`.
            max_new_tokens: int, at least 1. Largest number of tokens. The
                iterator stops earlier if all sequences have ended.
            **kwargs: Arguments of `generate`, except `return_logits`,
                `num_beams` and `length_penalty`.

        Returns:
            Iterator over int32 arrays `(B,)`.

        Raises:
            ValueError: As `generate`.
        """
        return stream(self, inputs, max_new_tokens, **kwargs)

    def start_conversation(
        self, *, max_length: int, positions: TensorLike | None = None
    ) -> Conversation:
        """Starts a text of alternating prompts and generated tokens.

        Args:
            max_length: int, at least 1. Largest number of tokens, including
                padding.
            positions: Positions of the tokens of each row without padding,
                `(max_length,)` or `(B, max_length)`; `None`: those of the
                sampler.

        Returns:
            `Conversation`.

        Raises:
            ValueError: If there are too few positions, or the model has
                cross-attention.
        """
        return Conversation(self, max_length=max_length, positions=positions)


_MEMORY = ("memory", "memory_mask", "memory_positions", "memory_segment_ids")
