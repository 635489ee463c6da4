"""Base classes of the Transformer models."""

import keras
from keras import ops

from keras_lengen.arguments import (
    check_boolean,
    check_choice,
    check_initializer,
    check_integer,
    check_keys,
    check_number,
    check_share,
)
from keras_lengen.layers.attention import with_encoding
from keras_lengen.layers.drawing import DrawingLayer, Dropout
from keras_lengen.layers.encodings.base import (
    PositionalEncoding,
    check_encoding,
)
from keras_lengen.layers.part_policies import PartPolicies
from keras_lengen.layers.side_inputs import (
    as_signed,
    as_tensor,
    both,
    check_lengths,
    check_padding_mask,
    check_rank,
    check_reference_length,
    demand,
    is_convertible,
    is_integer,
    show,
    where_holds,
)
from keras_lengen.layers.transformer import (
    TransformerBlock,
    attention_name,
    check_block_arguments,
    copy_initializer,
    kernel_initializer,
    norm_layer,
    with_attention,
)
from keras_lengen.models.programs import Programs

BLOCK_ARGUMENTS = (
    "num_heads",
    "feedforward_dim",
    "dropout",
    "attention_dropout",
    "attention",
    "normalization",
    "rms_norm",
    "activation",
    "use_bias",
    "num_key_value_heads",
    "scale_scores",
    "score_factor",
    "chunk_size",
    "kernel_initializer",
)
"""Arguments that a model passes on to all of its blocks."""


class TokenModel(PartPolicies, DrawingLayer, keras.Model):
    """Base of the models whose inputs are token ids."""

    id_inputs: tuple | None = None
    """Names of the required inputs; `None`: one tensor of token ids."""

    # Otherwise TensorFlow traces every inner model of an exported model with
    # inputs that it guesses.
    _default_save_signature = None

    def __init__(self, **kwargs):
        # Autocasting would round float positions to the compute dtype.
        super().__init__(autocast=False, **kwargs)
        self.supports_masking = True
        self.programs = Programs()

    def __call__(self, inputs, *args, **kwargs):
        return super().__call__(convert_numbers(inputs), *args, **kwargs)

    def export(
        self,
        filepath,
        format="tf_saved_model",
        verbose=None,
        input_signature=None,
        **kwargs,
    ):
        """Exports the model like `keras.Model.export`.

        Args:
            filepath: str or path. Where to write the artifact.
            format: str. One of the formats that Keras supports.
            verbose: bool or `None`. Whether to print the endpoints.
            input_signature: Shapes and dtypes of the inputs, as in Keras;
                `None`: int32 token ids of any batch size and length, without
                lengths, masks or positions.
            **kwargs: Further arguments of `keras.Model.export`.

        Returns:
            What `keras.Model.export` returns.
        """
        if input_signature is None:
            ids = keras.InputSpec(shape=(None, None), dtype="int32")
            inputs = ids
            if self.id_inputs is not None:
                inputs = dict.fromkeys(self.id_inputs, ids)
            input_signature = [inputs]
        return super().export(
            filepath,
            format=format,
            verbose=verbose,
            input_signature=input_signature,
            **kwargs,
        )


class Transformer(TokenModel):
    """Base of the encoder and the decoder: token ids to logits.

    Token ids are embedded, pass through the blocks and are mapped to logits.
    The docstring of `TransformerEncoder` describes the arguments.
    """

    causal = False
    """Whether each token attends only to itself and earlier tokens."""

    def __init__(
        self,
        *,
        vocabulary_size,
        output_size,
        num_layers,
        num_heads,
        model_dim,
        feedforward_dim=None,
        dropout=0.1,
        attention_dropout=0.0,
        embedding_dropout=None,
        encoding=None,
        attention=None,
        normalization="post",
        rms_norm=False,
        activation="relu",
        use_bias="feedforward",
        num_key_value_heads=None,
        scale_scores=True,
        score_factor=None,
        chunk_size="auto",
        tie_embeddings=False,
        embedding_scale=None,
        logit_scale=1.0,
        embeddings_initializer=None,
        kernel_initializer=None,
        draw="model",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = check_integer("vocabulary_size", vocabulary_size)
        self.output_size = check_integer(
            "output_size", output_size, optional=True
        )
        self.num_layers = check_integer("num_layers", num_layers)
        self.model_dim = check_integer("model_dim", model_dim)
        arguments = check_block_arguments(
            num_heads=num_heads,
            feedforward_dim=feedforward_dim,
            dropout=dropout,
            attention_dropout=attention_dropout,
            attention=attention,
            normalization=normalization,
            rms_norm=rms_norm,
            activation=activation,
            use_bias=use_bias,
            num_key_value_heads=num_key_value_heads,
            scale_scores=scale_scores,
            score_factor=score_factor,
            chunk_size=chunk_size,
            kernel_initializer=kernel_initializer,
        )
        for name, value in arguments.items():
            setattr(self, name, value)
        self.embedding_dropout = check_share(
            "embedding_dropout", embedding_dropout, optional=True
        )
        encoding = check_encoding("encoding", encoding)
        self.encoding = copy_encoding(
            PositionalEncoding() if encoding is None else encoding
        )
        self.tie_embeddings = check_boolean("tie_embeddings", tie_embeddings)
        self.embedding_scale = check_number(
            "embedding_scale", embedding_scale, optional=True
        )
        self.logit_scale = check_number("logit_scale", logit_scale)
        self.embeddings_initializer = check_initializer(
            "embeddings_initializer", embeddings_initializer
        )
        self.draw = check_choice("draw", draw, ("model", "layer"))
        if self.model_dim % self.num_heads:
            raise ValueError(
                f"num_heads={num_heads} does not divide model_dim={model_dim}."
            )
        if self.tie_embeddings and self.output_size != self.vocabulary_size:
            raise ValueError(
                "tie_embeddings uses the embeddings as output layer: "
                f"output_size must be vocabulary_size={vocabulary_size}; "
                f"got {output_size!r}."
            )

    def _make_layers(self, *, cross_attention=False, cross_encoding=None):
        """Creates and builds all layers, at the end of a constructor."""
        initializer = self.embeddings_initializer
        if initializer is None:
            initializer = keras.initializers.TruncatedNormal(stddev=0.02)
        embedding = (
            keras.layers.ReversibleEmbedding
            if self.tie_embeddings
            else keras.layers.Embedding
        )
        with self.parts_scope():
            self.embedding = embedding(
                self.vocabulary_size,
                self.model_dim,
                # A copy: one initializer instance would give all models the
                # same initial values.
                embeddings_initializer=copy_initializer(initializer),
                dtype=self.dtype_policy,
                name="embedding",
            )
        # As the head, it is called with masked features; Keras would warn.
        self.embedding.supports_masking = True
        self.dropout_layer = Dropout(
            self.dropout
            if self.embedding_dropout is None
            else self.embedding_dropout,
            dtype=self.dtype_policy,
        )
        in_attention = None
        if self.encoding.stage != "embeddings":
            in_attention = self.encoding
        self.blocks = [
            TransformerBlock(
                **{name: getattr(self, name) for name in BLOCK_ARGUMENTS},
                encoding=_get_layer_encoding(in_attention, layer),
                cross_attention=cross_attention,
                cross_encoding=_get_layer_encoding(cross_encoding, layer),
                use_causal_mask=self.causal,
                dtype=self.dtype_policy,
                name=f"block_{layer}",
            )
            for layer in range(self.num_layers)
        ]
        self.final_norm: keras.Layer | None = None
        self.head: keras.Layer | None = None
        with self.parts_scope():
            if self.normalization == "pre":
                self.final_norm = norm_layer(
                    self.rms_norm, dtype=self.dtype_policy, name="final_norm"
                )
            if self.output_size is not None and not self.tie_embeddings:
                self.head = self._make_head()
        # No weight depends on the shape of the inputs.
        self.build((None, None))

    def _make_head(self):
        return keras.layers.Dense(
            self.output_size,
            use_bias=self.use_bias is not False,
            kernel_initializer=kernel_initializer(self.kernel_initializer),
            dtype=self.part_policy("float32"),
            name="head",
        )

    def build(self, input_shape):
        if self.built:
            return
        shape = (None, None, self.model_dim)
        self.embedding.build((None, None))
        if self.encoding.stage == "embeddings":
            self.encoding.build(shape)
        for block in self.blocks:
            block.build(shape)
        if self.final_norm is not None:
            self.final_norm.build(shape)
        if self.head is not None:
            self.head.build(shape)
        self.settle_policies()

    def call(self, inputs, training=None):
        inputs, holds = self._unpack(inputs)
        mask = self.padding_mask(inputs)
        positions = inputs.get("positions")
        if positions is None:
            positions = self.sample_positions(inputs, training=training)
        features, _ = self.features(
            inputs["token_ids"],
            self.by_layer(positions),
            mask=mask,
            length=inputs.get("reference_length"),
            holds=holds,
            training=training,
            **self.memory(inputs, training),
        )
        return self.logits(features)

    def sample_positions(self, inputs, *, training=None):
        """Samples the positions of the tokens.

        Args:
            inputs: Dict of inputs, as in a call of the model.
            training: bool. Whether to sample as in training.

        Returns:
            Positions `(T,)` or `(B, T)`; with `draw="layer"`, a list of the
            positions for each layer.
        """
        draws = self.num_layers if self.draw == "layer" else 1
        positions = [
            self.encoding.sample_positions(
                inputs["token_ids"],
                lengths=inputs.get("lengths"),
                mask=inputs.get("padding_mask"),
                reference_length=inputs.get("reference_length"),
                training=training,
            )
            for _ in range(draws)
        ]
        return positions if self.draw == "layer" else positions[0]

    def by_layer(self, positions):
        """Returns a list of the positions for each block."""
        if self.draw == "layer" and isinstance(positions, list):
            return positions
        return [positions] * self.num_layers

    def features(
        self,
        token_ids,
        positions,
        *,
        cache=None,
        cache_update_index=None,
        holds=True,
        training=None,
        **kwargs,
    ):
        """Maps token ids `(B, T)` to features `(B, T, M)` before the head.

        Args:
            token_ids: int32 `(B, T)`.
            positions: List of the positions for each block. With a cache, they
                are the positions of all tokens that it has room for.
            cache: List of the caches of the blocks, or `None`.
            cache_update_index: int or scalar int tensor. Index in the cache
                of the first token of `token_ids`; `None` without a cache.
            holds: `True`, or bool `(1 or B,)`: examples whose inputs are
                valid; the features of all other examples are NaN.
            training: bool. Whether to apply dropout.
            **kwargs: Further call arguments of the blocks.

        Returns:
            Tuple of the features and the list of updated caches, which is
            empty without a cache.
        """
        own = [
            _slice_positions(of_layer, cache_update_index, token_ids)
            for of_layer in positions
        ]
        x = self._begin(token_ids, own[0], holds=holds, training=training)
        if cache is None:
            kwargs["training"] = training
        else:
            kwargs["cache_update_index"] = cache_update_index
        x, new_cache = self._apply_blocks(x, own, positions, cache, **kwargs)
        return self._end(x, training=training), new_cache

    def _begin(self, token_ids, positions, *, holds=True, training=None):
        """Returns the input of the first block, `(B, T, M)`."""
        x = self._embed(token_ids, holds)
        if self.encoding.stage == "embeddings":
            x = self.encoding(x, positions=positions)
        if (
            self.encoding.stage == "embeddings"
            or self.embedding_dropout is not None
        ):
            x = self.dropout_layer(x, training=training)
        return x

    def _end(self, x, *, training=None):
        """Returns features for the head from the output of the last block."""
        if self.final_norm is not None:
            x = self.final_norm(x)
            if self.embedding_dropout is not None:
                x = self.dropout_layer(x, training=training)
        return x

    def _apply_blocks(self, x, own, positions, cache, **kwargs):
        """Applies the blocks one after the other.

        Args:
            x: `(B, T, M)`.
            own: List of the positions of these tokens for each block.
            positions: List of the positions of all tokens for each block.
            cache: List of the caches of the blocks, or `None`.
            **kwargs: Further call arguments of the blocks.

        Returns:
            Tuple of `(B, T, M)` and the list of updated caches, which is empty
            without a cache.
        """
        new_cache = []
        for layer, block in enumerate(self.blocks):
            if cache is None:
                x = block(x, positions=own[layer], **kwargs)
                continue
            x, of_layer = block(
                x,
                positions=own[layer],
                key_positions=positions[layer],
                cache=cache[layer],
                **kwargs,
            )
            new_cache.append(of_layer)
        return x, new_cache

    def _embed(self, token_ids, holds):
        """Returns scaled embeddings, NaN where the condition does not hold."""
        scale = self.embedding_scale
        scale = self.model_dim**0.5 if scale is None else scale
        if holds is not True:
            # A negative id in a compiled look-up would be clamped, or raise
            # an error that does not name the argument.
            token_ids = ops.maximum(token_ids, 0)
        x = self.embedding(token_ids)
        if holds is not True:
            scale = where_holds(holds, ops.full((1, 1, 1), scale, x.dtype))
        return x * scale

    def make_cache(self, batch_size, length, memory=None):
        """Creates empty caches of keys and values for all blocks.

        Args:
            batch_size: int. Number of sequences.
            length: int. Number of tokens that each cache has room for.
            memory: `(B, S, N)`, the sequence for cross-attention, or `None`.

        Returns:
            List of the cache of each block.
        """
        return [
            block.make_cache(batch_size, length, memory)
            for block in self.blocks
        ]

    def logits(self, features):
        """Maps features `(B, T, M)` to float32 logits `(B, T, output_size)`.

        Without an output layer, it returns the features.
        """
        if self.head is not None:
            logits = self.head(features)
        elif self.tie_embeddings:
            logits = self.embedding(features, reverse=True)
        else:
            return features
        logits = ops.cast(logits, "float32")
        return logits if self.logit_scale == 1 else logits * self.logit_scale

    def _unpack(self, inputs, *, new_tokens=0):
        """Checks the inputs and returns them as a dict.

        Args:
            inputs: Inputs of a call.
            new_tokens: int. Number of tokens that will be generated;
                `"positions"` must include their positions.

        Returns:
            Tuple of the dict and a condition: `True`, or a bool tensor
            `(1 or B,)` that tells, when the program runs, for which examples
            the inputs are valid.

        Raises:
            ValueError: If an input is invalid.
        """
        if not isinstance(inputs, dict):
            inputs = {"token_ids": inputs}
        known = {
            "token_ids",
            "lengths",
            "padding_mask",
            "positions",
            "reference_length",
            *self._further_inputs,
        }
        check_keys(inputs, known, "inputs")
        names = {name for name, value in inputs.items() if value is not None}
        ids = self.input_name("token_ids")
        if "token_ids" not in names:
            raise ValueError(
                f"inputs must have {ids}, integers of shape (B, T); got "
                f"{', '.join(map(self.input_name, sorted(names))) or 'none'}."
            )
        if {"lengths", "padding_mask"} <= names:
            raise ValueError(
                f"give at most one of {self.input_name('lengths')} and "
                f"{self.input_name('padding_mask')}: both say which tokens "
                "are padding."
            )
        inputs = {name: inputs[name] for name in names}
        ids, holds = self._check_token_ids(inputs["token_ids"])
        inputs["token_ids"] = ids
        for name, check in (
            ("lengths", check_lengths),
            ("padding_mask", check_padding_mask),
        ):
            if name in names:
                inputs[name], fits = check(
                    inputs[name], ids, name=self.input_name(name)
                )
                holds = both(holds, flatten_condition(fits))
        if "reference_length" in names:
            inputs["reference_length"] = check_reference_length(
                inputs["reference_length"],
                ids,
                name=self.input_name("reference_length"),
            )
        if "positions" in names:
            tokens = ids
            if new_tokens:
                batch_size, prompt_tokens = ids.shape
                tokens = keras.KerasTensor(
                    (batch_size, prompt_tokens + new_tokens)
                )
            inputs["positions"] = self._check_positions(
                inputs["positions"], tokens
            )
        return inputs, holds

    def _check_token_ids(self, token_ids):
        """Returns int32 token ids, and whether those of each example are valid.

        The second value is `True`, or bool `(B,)` if only a run of the program
        can tell. Ids outside the vocabulary become -1.
        """
        name = self.input_name("token_ids")
        token_ids = as_tensor(name, token_ids, "integers of shape (B, T)")
        check_rank(name, token_ids, (2,), "(B, T)")
        if not is_integer(token_ids):
            dtype = keras.backend.standardize_dtype(token_ids.dtype)
            raise ValueError(
                f"{name} must be integers; got {dtype}: cast them, and give "
                'keras.Input dtype="int32".'
            )
        if isinstance(token_ids, keras.KerasTensor):
            return token_ids, True
        token_ids = as_signed(token_ids)
        inside = demand(
            ops.logical_and(token_ids >= 0, token_ids < self.vocabulary_size),
            f"{name} must be from 0 to {self.vocabulary_size - 1}, below "
            "vocabulary_size; got ids from ",
            ops.min(token_ids, initial=0),
            " to ",
            ops.max(token_ids, initial=0),
            ".",
        )
        token_ids = ops.cast(token_ids, "int32")
        if inside is True:
            return token_ids, True
        # -1, so that a later check finds the same ids invalid.
        return ops.where(inside, token_ids, -1), ops.all(inside, axis=-1)

    def _check_positions(self, positions, token_ids):
        name = self.input_name("positions")
        check = self.encoding.given_positions
        if (
            self.draw == "layer"
            and isinstance(positions, list)
            and len(positions) == self.num_layers
            and not all(isinstance(each, int | float) for each in positions)
        ):
            return [check(each, token_ids, name=name) for each in positions]
        return check(positions, token_ids, name=name)

    input_prefix = ""
    """Prefix of the input names that callers use, for error messages."""

    def input_name(self, name):
        """Returns the name that callers use for an input."""
        if not self.input_prefix or name in self._further_inputs:
            return name
        return self.input_prefix + name.removeprefix("token_")

    _further_inputs: tuple = ()
    """Names of the additional inputs of a subclass."""

    def memory(self, inputs, training=None):
        """Returns the call arguments of the blocks for cross-attention."""
        return {}

    def padding_mask(self, inputs):
        """Returns a bool mask `(B, T)`, true for real tokens, or `None`."""
        if inputs.get("lengths") is None:
            return inputs.get("padding_mask")
        shape = ops.shape(inputs["token_ids"])
        tokens = ops.arange(shape[1], dtype="int32")
        lengths = ops.cast(inputs["lengths"], "int32")
        return ops.broadcast_to(
            ops.less(tokens, ops.reshape(lengths, (-1, 1))), shape
        )

    def compute_mask(self, inputs, previous_mask=None):
        return None

    def compute_output_spec(self, inputs, training=None):
        inputs, _ = self._unpack(inputs)
        shape = inputs["token_ids"].shape
        if inputs.get("positions") is None:
            self.encoding.sampler.compute_output_spec(inputs["token_ids"])
        return self._make_output_spec(shape)

    def compute_output_shape(self, inputs_shape):
        if isinstance(inputs_shape, dict):
            inputs_shape = inputs_shape["token_ids"]
        return self._make_output_spec(inputs_shape).shape

    def _make_output_spec(self, shape):
        if self.output_size is None:
            return keras.KerasTensor(
                (*shape, self.model_dim), dtype=self.compute_dtype
            )
        return keras.KerasTensor((*shape, self.output_size), dtype="float32")

    def get_config(self):
        serialize = keras.initializers.serialize
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "output_size": self.output_size,
            "num_layers": self.num_layers,
            "model_dim": self.model_dim,
            **{name: getattr(self, name) for name in BLOCK_ARGUMENTS},
            "embedding_dropout": self.embedding_dropout,
            "encoding": keras.saving.serialize_keras_object(self.encoding),
            "attention": attention_name(self.attention),
            "activation": keras.activations.serialize(self.activation),
            "tie_embeddings": self.tie_embeddings,
            "embedding_scale": self.embedding_scale,
            "logit_scale": self.logit_scale,
            "embeddings_initializer": serialize(self.embeddings_initializer),
            "kernel_initializer": serialize(self.kernel_initializer),
            "draw": self.draw,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**with_encoding(with_attention(config)))


def convert_numbers(inputs):
    """Converts plain numbers and lists among inputs, which Keras rejects.

    Args:
        inputs: A value or a dict of values.

    Returns:
        The same structure, with tensors in place of numbers and lists.

    Raises:
        ValueError: If a value cannot be converted.
    """
    if not isinstance(inputs, dict):
        return _convert("inputs, the token ids,", inputs)
    return {name: _convert(name, value) for name, value in inputs.items()}


def _convert(name, value):
    leaves = keras.tree.flatten(value)
    if all(isinstance(leaf, int | float) for leaf in leaves) and leaves:
        try:
            return ops.convert_to_tensor(value)
        except (ValueError, TypeError, OverflowError):
            pass  # Lists of unequal lengths, or integers beyond 32 bits.
    if all(leaf is None or is_convertible(leaf) for leaf in leaves):
        return value
    raise ValueError(
        f"{name} must be a tensor, or a regular nested list of 32-bit "
        f"numbers; got {show(value)}."
    )


def flatten_condition(holds):
    """Reshapes a condition `()`, `(1,)` or `(B,)` to one axis; keeps `True`."""
    return holds if holds is True else ops.reshape(holds, (-1,))


def _slice_positions(positions, index, token_ids):
    """Slices these tokens' positions out of the full sequence's."""
    if index is None:
        return positions
    indices = index + ops.arange(ops.shape(token_ids)[1], dtype="int32")
    return keras.tree.map_structure(
        lambda axis: ops.take(axis, indices, axis=-1), positions
    )


def _get_layer_encoding(encoding, layer):
    """Returns the encoding for one block, a copy if weights are not shared."""
    if encoding is None or encoding.share_layers or layer == 0:
        return encoding
    return copy_encoding(encoding)


def copy_encoding(encoding):
    """Returns an encoding of the same configuration with its own weights."""
    return type(encoding).from_config(encoding.get_config())
