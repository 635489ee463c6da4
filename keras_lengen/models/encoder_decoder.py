"""Encoder-decoder Transformer from one token sequence to another."""

from collections.abc import Iterator
from typing import Any

import keras

from keras_lengen.checks.arguments import (
    Argument,
    Boolean,
    Integer,
    Optional,
    OrDefault,
    check_keys,
    described,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.checks.inputs import guard_same_size
from keras_lengen.layers.encodings.base import (
    EncodingArgument,
    PositionalEncoding,
)
from keras_lengen.models.base import (
    Inputs,
    ModelArguments,
    TokenModel,
    convert_numbers,
)
from keras_lengen.models.decoder import TransformerDecoder
from keras_lengen.models.encoder import TransformerEncoder
from keras_lengen.models.programs import compile_function
from keras_lengen.types import Array, Shape, Tensor

_TARGET = "target_"
_DEFAULTS = {
    "target_vocabulary_size": "vocabulary_size",
    "output_size": "target_vocabulary_size",
    "num_decoder_layers": "num_layers",
}
"""The argument whose value each of these has by default."""

_OPTIONAL = {
    "lengths",
    "padding_mask",
    "positions",
    "reference_length",
    "segment_ids",
}


@keras.saving.register_keras_serializable(package="keras_lengen")
class EncoderDecoder(ModelArguments, TokenModel):
    """An encoder-decoder Transformer: source token ids to target logits.

    The encoder reads the source. The causal decoder, whose blocks attend to
    the output of the encoder, maps the target tokens to next-token logits. As
    a classifier, the model decodes a single token.

    Encoder and decoder number their own tokens, each with its own copy of the
    encoding. Their draws of positions are independent unless the sampler has
    an integer seed. Cross-attention uses no positions unless `cross_encoding`
    is given; that encoding gets the positions of the source and the target,
    and its own sampler is ignored.

    Args:
        vocabulary_size: int, at least 1. Number of token ids of the source.
        output_size: int, at least 1. Number of classes; `None`:
            `target_vocabulary_size`.
        target_vocabulary_size: int, at least 1. Number of token ids of the
            target; `None`: `vocabulary_size`.
        num_layers: int, at least 1. Number of Transformer blocks of the
            encoder.
        num_decoder_layers: int, at least 1. Number of Transformer blocks of
            the decoder; `None`: `num_layers`.
        cross_encoding: `PositionalEncoding` of the cross-attention, or `None`.
        **kwargs: Further arguments of `TransformerEncoder`, for both encoder
            and decoder; `tie_embeddings` concerns only the decoder.

    Call arguments:
        inputs: Dict with the entries `"token_ids"`, integers `(B, S)`, of the
            source, and `"target_ids"`, integers `(B, T)`. Optional entries, as
            for `TransformerEncoder`: `"lengths"` or `"padding_mask"`,
            `"positions"`, `"reference_length"` and `"segment_ids"` of the
            source, and the same of the target, with the prefix `"target_"`.
            Target tokens attend to the source tokens with their own number
            among the `"segment_ids"`.
        training: bool. Whether to apply dropout and to draw positions as in
            training.

    Returns:
        float32 logits `(B, T, output_size)`.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    >>> from keras import ops
    >>> from keras_lengen.layers import RandomizedRoPE
    >>> from keras_lengen.models import EncoderDecoder
    >>> model = EncoderDecoder(
    ...     vocabulary_size=256, target_vocabulary_size=1, output_size=10,
    ...     num_layers=2, num_heads=4, model_dim=32, encoding=RandomizedRoPE())
    >>> pixels = ops.ones((2, 30), "int32")
    >>> start = ops.zeros((2, 1), "int32")
    >>> model({"token_ids": pixels, "target_ids": start}).shape
    TensorShape([2, 1, 10])

    Reference: Vaswani et al., 2017, section 3.
    https://arxiv.org/abs/1706.03762
    """

    id_inputs = ("token_ids", _TARGET + "ids")

    vocabulary_size: int = argument()
    output_size: OrDefault[int] = argument(default=None)
    target_vocabulary_size: OrDefault[int] = argument(
        OrDefault(Integer(example=6)), default=None
    )
    num_layers: int = argument()
    num_decoder_layers: OrDefault[int] = argument(
        OrDefault(Integer(example=2)), default=None
    )
    cross_encoding: PositionalEncoding | None = argument(
        Optional(EncodingArgument()), default=None
    )

    def assign(self, values: dict[str, Any]) -> None:
        """Assigns the arguments of the pair, and makes the two parts."""
        options = dict(values)
        own = {name: options.pop(name) for name in _list_own()}
        cross_encoding = own.pop("cross_encoding")
        for name, other in _DEFAULTS.items():
            if own[name] is None:
                own[name] = own[other]
        # Checked here, because the two parts have other names for them.
        super().assign(own)
        self.encoder = TransformerEncoder(
            vocabulary_size=self.vocabulary_size,
            output_size=None,
            num_layers=self.num_layers,
            name="encoder",
            dtype=self.dtype_policy,
            **{**options, "tie_embeddings": False},
        )
        self.decoder = TransformerDecoder(
            vocabulary_size=self.target_vocabulary_size,
            output_size=self.output_size,
            num_layers=self.num_decoder_layers,
            cross_attention=True,
            cross_encoding=cross_encoding,
            name="decoder",
            dtype=self.dtype_policy,
            **options,
        )
        self.cross_encoding = self.decoder.cross_encoding

    def __post_init__(self) -> None:
        super().__post_init__()
        self.decoder.input_prefix = _TARGET
        self.decoder.memory_segment_ids = "segment_ids"
        for name in ("encoding", "attention", "feedforward"):
            if isinstance(getattr(self.decoder, name), list) and (
                self.num_layers != self.num_decoder_layers
            ):
                raise ValueError(
                    f"an argument {name} for each layer needs as many layers "
                    "in the decoder as in the encoder; got "
                    f"{self.num_decoder_layers} and {self.num_layers}."
                )
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Tensor:
        source, target = self._unpack(inputs)
        return self.decoder(
            {**target, **self._read(source, training=training)},
            training=training,
        )

    def _read(self, source: Inputs, training: bool | None = None) -> Inputs:
        """Encodes the source and returns the decoder's `memory` inputs."""
        positions = source.get("positions")
        if positions is None:
            positions = self.encoder.sample_positions(source, training=training)
            source = {**source, "positions": positions}
        memory = {
            "memory": self.encoder(source, training=training),
            "memory_mask": self.encoder.padding_mask(source),
            "memory_segment_ids": source.get("segment_ids"),
        }
        if self.cross_encoding is not None:
            # The positions in the last block, which outputs the memory.
            memory["memory_positions"] = self.encoder.by_layer(positions)[-1]
        return memory

    def _unpack(self, inputs: Any) -> tuple[Inputs, Inputs]:
        """Checks the inputs and splits them into source and target.

        Args:
            inputs: Dict of inputs of a call.

        Returns:
            Tuple of the inputs of the encoder, and those of the decoder
            without `"memory"`.

        Raises:
            ValueError: If an input is invalid.
        """
        needed = {"token_ids", _TARGET + "ids"}
        if not isinstance(inputs, dict):
            raise ValueError(
                "inputs must be a dict of at least token_ids and target_ids; "
                f"got {described(inputs)}."
            )
        known = needed | _OPTIONAL | {_TARGET + name for name in _OPTIONAL}
        check_keys(inputs, known, "inputs")
        if any(inputs.get(name) is None for name in needed):
            given = [key for key, value in inputs.items() if value is not None]
            raise ValueError(
                "inputs must have token_ids and target_ids, integers of shape "
                f"(B, S) and (B, T); got {', '.join(given) or 'none'}."
            )
        source, target = _split_inputs(convert_numbers(inputs))
        source = self.encoder._unpack(source)
        if source["token_ids"].shape[1] == 0:
            raise ValueError(
                "token_ids must have at least one token, for the target to "
                f"attend to; got shape {tuple(source['token_ids'].shape)}."
            )
        ids = self.decoder._read_token_ids(target["token_ids"])
        target["token_ids"] = guard_same_size(
            ids, 0, token_ids=source["token_ids"], target_ids=ids
        )
        return source, target

    def generate(
        self,
        inputs: Any,
        max_new_tokens: int,
        *,
        jit_compile: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Generates the tokens that follow the target.

        Args:
            inputs: Dict of inputs of a call. `"target_ids"` must have at
                least one token, from which generation starts.
            max_new_tokens: int, at least 1. Number of tokens to generate.
            jit_compile: bool. Whether XLA compiles the programs.
            **kwargs: Further arguments of `TransformerDecoder.generate`.

        Returns:
            What `TransformerDecoder.generate` returns.

        Raises:
            ValueError: As `TransformerDecoder.generate`.
        """
        inputs = self._read_prompts(inputs, jit_compile)
        return self.decoder.generate(
            inputs, max_new_tokens, jit_compile=jit_compile, **kwargs
        )

    def stream(
        self,
        inputs: Any,
        max_new_tokens: int,
        *,
        jit_compile: bool = True,
        **kwargs: Any,
    ) -> Iterator[Array]:
        """Generates the same tokens as `generate`, one at a time.

        Args:
            inputs: Dict of inputs, as for `generate`.
            max_new_tokens: int, at least 1. Largest number of tokens.
            jit_compile: bool. Whether XLA compiles the programs.
            **kwargs: Further arguments of `TransformerDecoder.stream`.

        Returns:
            Iterator over int32 arrays `(B,)`.

        Raises:
            ValueError: As `generate`.
        """
        inputs = self._read_prompts(inputs, jit_compile)
        return self.decoder.stream(
            inputs, max_new_tokens, jit_compile=jit_compile, **kwargs
        )

    def _read_prompts(self, inputs: Any, jit_compile: bool) -> Inputs:
        """Encodes the source in a compiled program; returns decoder inputs."""
        source, target = self._unpack(inputs)
        if source.get("positions") is None:
            # Drawn here, because the compiled program draws no random numbers.
            source["positions"] = self.encoder.sample_positions(
                source, training=False
            )
        read = self.programs.get(
            self,
            Boolean().check("jit_compile", jit_compile),
            lambda: compile_function(self._read, self.variables, jit_compile),
        )
        return {**target, **read(source)}

    def compute_mask(
        self, inputs: Inputs, previous_mask: Tensor | None = None
    ) -> Tensor | None:
        _, target = _split_inputs(inputs)
        return self.decoder.compute_mask(target)

    def compute_output_spec(
        self, inputs: Any, training: bool | None = None
    ) -> keras.KerasTensor:
        source, target = self._unpack(inputs)
        self.encoder.compute_output_spec(source)
        return self.decoder.compute_output_spec(target)

    def compute_output_shape(self, inputs_shape: dict[str, Shape]) -> Shape:
        return (*inputs_shape["target_ids"], self.output_size)

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration; shared arguments are the decoder's."""
        shared = self.decoder.get_config()
        del shared["cross_attention"]
        return {
            **shared,
            **TokenModel.get_config(self),
            **{
                name: argument.serialize(getattr(self, name))
                for name, argument in _list_own().items()
            },
        }


def _list_own() -> dict[str, Argument[Any]]:
    """Lists the arguments that encoder and decoder do not share."""
    return {
        name: each
        for name, each in vars(EncoderDecoder).items()
        if isinstance(each, Argument)
    }


def _split_inputs(inputs: Inputs) -> tuple[Inputs, Inputs]:
    """Splits inputs into those of the encoder and those of the decoder."""
    source: Inputs = {}
    target: Inputs = {}
    for name, value in inputs.items():
        whose = target if name.startswith(_TARGET) else source
        whose[name.removeprefix(_TARGET)] = value
    target["token_ids"] = target.pop("ids")
    return source, target
