"""Transformer from one sequence of tokens to another."""

import keras

from keras_lengen.arguments import (
    check_boolean,
    check_integer,
    check_keys,
    described,
)
from keras_lengen.layers.attention import with_encoding
from keras_lengen.layers.side_inputs import check_same_size
from keras_lengen.layers.transformer import with_attention
from keras_lengen.models.base import TokenModel, numbers_as_tensors
from keras_lengen.models.decoder import TransformerDecoder
from keras_lengen.models.encoder import TransformerEncoder
from keras_lengen.models.programs import compiled

_TARGET = "target_"
_FURTHER = {"lengths", "padding_mask", "positions", "reference_length"}


@keras.saving.register_keras_serializable(package="keras_lengen")
class EncoderDecoder(TokenModel):
    """A Transformer that reads one sequence and writes another.

    An encoder reads the source; a causal decoder, whose blocks attend to what
    the encoder returns, maps the target tokens to logits of the next ones. A
    classifier is one that decodes a single token.

    Both have positions of their own and a copy each of the encoding; draws are
    independent unless it has an integer seed. Cross attention has no positions
    unless `cross_encoding` is given, which gets those of source and target
    whatever its own sampler is.

    Args:
        vocabulary_size: Number of token ids of the source.
        output_size: Number of classes of every output, `None` for
            `target_vocabulary_size`.
        target_vocabulary_size: Number of token ids of the target, `None` for
            `vocabulary_size`.
        num_decoder_layers: Number of blocks of the decoder, `None` for
            `num_layers`, as many as the encoder has.
        cross_encoding: `PositionalEncoding` of the cross attention, or `None`.
        **kwargs: Further arguments of `TransformerEncoder`, for both.

    Call arguments:
        inputs: Dict of `"token_ids"` `(B, S)`, those of the source, and
            `"target_ids"` `(B, T)`. Where wanted, of either: `"lengths"` or
            `"padding_mask"`, `"positions"` and `"reference_length"`, as for
            `TransformerEncoder`; those of the target begin with `"target_"`.
        training: Whether to drop out, and to draw positions as in training.

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

    def __init__(
        self,
        *,
        vocabulary_size,
        output_size=None,
        target_vocabulary_size=None,
        num_layers,
        num_decoder_layers=None,
        cross_encoding=None,
        name=None,
        trainable=True,
        dtype=None,
        **kwargs,
    ):
        super().__init__(name=name, trainable=trainable, dtype=dtype)
        self.vocabulary_size = check_integer("vocabulary_size", vocabulary_size)
        self.target_vocabulary_size = check_integer(
            "target_vocabulary_size",
            vocabulary_size
            if target_vocabulary_size is None
            else target_vocabulary_size,
        )
        self.output_size = check_integer(
            "output_size",
            self.target_vocabulary_size if output_size is None else output_size,
        )
        self.num_layers = check_integer("num_layers", num_layers)
        self.num_decoder_layers = check_integer(
            "num_decoder_layers",
            num_layers if num_decoder_layers is None else num_decoder_layers,
        )
        both = {**kwargs, "dtype": self.dtype_policy}
        self.encoder = TransformerEncoder(
            vocabulary_size=vocabulary_size,
            output_size=None,
            num_layers=num_layers,
            name="encoder",
            **{**both, "tie_embeddings": False},
        )
        self.decoder = TransformerDecoder(
            vocabulary_size=self.target_vocabulary_size,
            output_size=self.output_size,
            num_layers=self.num_decoder_layers,
            cross_attention=True,
            cross_encoding=cross_encoding,
            name="decoder",
            **both,
        )
        self.decoder.input_prefix = _TARGET
        self.cross_encoding = self.decoder.cross_encoding
        self.built = True

    def call(self, inputs, training=None):
        source, target = self._unpack(inputs)
        return self.decoder(
            {**target, **self._read(source, training=training)},
            training=training,
        )

    def _read(self, source, training=None):
        """What the decoder gets to know of the source."""
        positions = source.get("positions")
        if positions is None:
            positions = self.encoder.sample_positions(source, training=training)
            source = {**source, "positions": positions}
        memory = {
            "memory": self.encoder(source, training=training),
            "memory_mask": self.encoder.padding_mask(source),
        }
        if self.cross_encoding is not None:
            # Those of the layer that returns the memory.
            memory["memory_positions"] = self.encoder.by_layer(positions)[-1]
        return memory

    def _unpack(self, inputs):
        """Inputs of the encoder, and of the decoder but what it attends to."""
        needed = {"token_ids", _TARGET + "ids"}
        if not isinstance(inputs, dict):
            raise ValueError(
                "inputs must be a dict of at least token_ids and target_ids; "
                f"got {described(inputs)}."
            )
        known = needed | _FURTHER | {_TARGET + name for name in _FURTHER}
        check_keys(inputs, known, "inputs")
        if any(inputs.get(name) is None for name in needed):
            given = [key for key, value in inputs.items() if value is not None]
            raise ValueError(
                "inputs must have token_ids and target_ids, integers of shape "
                f"(B, S) and (B, T); got {', '.join(given) or 'none'}."
            )
        source: dict = {}
        target: dict = {}
        for name, value in numbers_as_tensors(inputs).items():
            whose = target if name.startswith(_TARGET) else source
            whose[name.removeprefix(_TARGET)] = value
        target["token_ids"] = target.pop("ids")
        source, _ = self.encoder._unpack(source)
        target["token_ids"], _ = self.decoder._check_token_ids(
            target["token_ids"]
        )
        check_same_size(
            0, token_ids=source["token_ids"], target_ids=target["token_ids"]
        )
        return source, target

    def generate(self, inputs, max_new_tokens, *, jit_compile=True, **kwargs):
        """The tokens that follow those of the target.

        Args:
            inputs: Inputs of a call; `"target_ids"` are at least a token to
                start from.
            max_new_tokens: Number of tokens to generate, at least 1.
            jit_compile: Whether XLA compiles the programs.
            **kwargs: Further arguments of `TransformerDecoder.generate`.

        Returns:
            What `TransformerDecoder.generate` returns.
        """
        inputs = self._prompts(inputs, jit_compile)
        return self.decoder.generate(
            inputs, max_new_tokens, jit_compile=jit_compile, **kwargs
        )

    def stream(self, inputs, max_new_tokens, *, jit_compile=True, **kwargs):
        """Yields the tokens of `generate` one by one, int32 `(B,)`."""
        inputs = self._prompts(inputs, jit_compile)
        return self.decoder.stream(
            inputs, max_new_tokens, jit_compile=jit_compile, **kwargs
        )

    def _prompts(self, inputs, jit_compile):
        """Inputs of the decoder, the source read by a compiled program."""
        source, target = self._unpack(inputs)
        if source.get("positions") is None:
            # Outside the program, which draws nothing.
            source["positions"] = self.encoder.sample_positions(
                source, training=False
            )
        read = self.programs.get(
            self,
            check_boolean("jit_compile", jit_compile),
            lambda: compiled(self._read, self.variables, jit_compile),
        )
        return {**target, **read(source)}

    def compute_output_spec(self, inputs, training=None):
        source, target = self._unpack(inputs)
        self.encoder.compute_output_spec(source)
        return self.decoder.compute_output_spec(target)

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape["target_ids"], self.output_size)

    def get_config(self):
        """Arguments: those of the decoder serve both."""
        config = self.decoder.get_config()
        del config["cross_attention"]
        return {
            **config,
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "target_vocabulary_size": self.target_vocabulary_size,
            "num_layers": self.num_layers,
            "num_decoder_layers": self.num_decoder_layers,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**with_encoding(with_attention(config)))
