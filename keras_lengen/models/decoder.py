"""Causal Transformer over tokens, which generates them."""

import keras

from keras_lengen.arguments import check_boolean
from keras_lengen.layers.side_inputs import (
    check_padding_mask,
    check_rank,
    check_same_size,
)
from keras_lengen.layers.transformer import check_cross_encoding
from keras_lengen.models.base import Transformer, copy_encoding
from keras_lengen.models.generation import generate, stream


@keras.saving.register_keras_serializable(package="keras_lengen")
class TransformerDecoder(Transformer):
    """A causal Transformer from token ids to logits of the next ones.

    Token `t` sees no later one, so logits at `t` do not change when the
    sequence grows, unless positions or an encoding depend on its length: give
    `"positions"` and `"reference_length"` then.

    Args:
        vocabulary_size: Number of token ids.
        output_size: Number of classes of every output, `None` for
            `vocabulary_size`.
        cross_attention: Whether blocks attend to `"memory"` too.
        cross_encoding: `PositionalEncoding` of that attention, `None` for
            none.
        **kwargs: Arguments of `TransformerEncoder`.

    Call arguments:
        inputs: Token ids `(B, T)`, or a dict as for `TransformerEncoder`, of
            `"memory"` `(B, S, M)`, `"memory_mask"` `(B, S)` and
            `"memory_positions"` too where there is cross attention; without
            the last, the sampler of `cross_encoding` is asked.
        training: Whether to drop out, and to draw positions as in training.

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

    def __init__(
        self,
        *,
        vocabulary_size,
        output_size=None,
        cross_attention=False,
        cross_encoding=None,
        **kwargs,
    ):
        check_boolean("cross_attention", cross_attention)
        check_cross_encoding(cross_encoding, cross_attention)
        super().__init__(
            vocabulary_size=vocabulary_size,
            output_size=vocabulary_size if output_size is None else output_size,
            **kwargs,
        )
        self.cross_attention = cross_attention
        if cross_attention:
            self._further_inputs = _MEMORY
        self.cross_encoding = cross_encoding and copy_encoding(cross_encoding)
        self._make_layers(
            cross_attention=cross_attention, cross_encoding=self.cross_encoding
        )

    def memory(self, inputs, training=None):
        if not self.cross_attention:
            return {}
        memory = {name: inputs.get(name) for name in _MEMORY}
        if memory["memory"] is None:
            raise ValueError(
                'a decoder with cross_attention needs `"memory"`, the sequence '
                "to attend to, among its inputs."
            )
        states = memory["memory"]
        check_rank("memory", states, (3,), f"(B, S, {self.model_dim})")
        if states.shape[-1] != self.model_dim:
            raise ValueError(
                f"memory must have the width {self.model_dim} of the model; "
                f"got {states.shape[-1]}."
            )
        check_same_size(0, memory=states, token_ids=inputs["token_ids"])
        memory["memory_mask"], _ = check_padding_mask(
            memory["memory_mask"], states, name="memory_mask"
        )
        encoding, positions = self.cross_encoding, memory["memory_positions"]
        if encoding is None:
            return memory
        if positions is None:
            positions = encoding.sample_positions(
                states, mask=memory["memory_mask"], training=training
            )
        else:
            positions = encoding.given_positions(
                positions, states, name="memory_positions"
            )
        return {**memory, "memory_positions": positions}

    def generate(
        self,
        inputs,
        max_new_tokens,
        *,
        temperature=0.0,
        top_k=None,
        top_p=None,
        end_token=None,
        seed=None,
        return_logits=False,
        jit_compile=True,
    ):
        """The tokens that follow those of `inputs`.

        Each token is computed once: keys and values of the earlier ones are
        cached. Positions are drawn once, for the prompt and the new tokens
        together, and lengths that encodings depend on are those of both.
        Programs are compiled once for each shape of prompts and number of new
        tokens, and kept: pad prompts to a few widths.

        Args:
            inputs: Prompts, as the inputs of a call; padding may stand at
                either end. `"positions"` are those of prompt and new tokens,
                `(T + max_new_tokens,)` or with an axis of examples before.
            max_new_tokens: Number of tokens to generate, at least 1.
            temperature: 0 for the likeliest token; otherwise tokens are
                sampled, from logits divided by it.
            top_k: Number of likeliest tokens to sample from, `None` for all.
            top_p: Probability of the smallest set of likeliest tokens to
                sample from, `None` for all.
            end_token: Id of the token after which a sequence ends; it fills
                the rest. `None` for no such token.
            seed: Integer seed of the sampled tokens, `None` for a random one.
            return_logits: Whether to return the logits of all new tokens too,
                float32 `(B, max_new_tokens, output_size)`, zeros after the
                step at which the last sequence ended.
            jit_compile: Whether XLA compiles the programs.

        Returns:
            int32 array `(B, max_new_tokens)`, and the logits if wanted.

        Raises:
            ValueError: If an argument is out of range, or there are not
                enough positions.
        """
        return generate(
            self,
            inputs,
            max_new_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            end_token=end_token,
            seed=seed,
            return_logits=return_logits,
            jit_compile=jit_compile,
        )

    def stream(self, inputs, max_new_tokens, **kwargs):
        """Yields the tokens of `generate` one by one, int32 `(B,)`.

        Args:
            inputs: Prompts, as for `generate`.
            max_new_tokens: Largest number of tokens; the stream is over when
                all sequences have ended.
            **kwargs: Arguments of `generate` but `return_logits`.
        """
        return stream(self, inputs, max_new_tokens, **kwargs)

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "cross_attention": self.cross_attention,
            "cross_encoding": serialize(self.cross_encoding),
        }


_MEMORY = ("memory", "memory_mask", "memory_positions")
