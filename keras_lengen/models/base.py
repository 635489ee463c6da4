"""Base classes of the Transformer models."""

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    check_boolean,
    check_choice,
    check_initializer,
    check_integer,
    check_keys,
    check_number,
    check_share,
)
from keras_lengen.checks.guards import mark_by_positions, mark_like
from keras_lengen.checks.inputs import (
    is_convertible,
    read_lengths,
    read_mask,
    read_reference_length,
    read_token_ids,
    show,
)
from keras_lengen.layers.attention.cache import (
    find_new_positions,
    find_sequence_length,
)
from keras_lengen.layers.attention.inputs import make_context
from keras_lengen.layers.attention.multi_head import with_encoding
from keras_lengen.layers.attention.token_order import guard_order
from keras_lengen.layers.drawing import DrawingLayer, Dropout
from keras_lengen.layers.encodings.base import check_encoding
from keras_lengen.layers.encodings.nope import NoPE
from keras_lengen.layers.part_policies import PartPolicies
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
        self.encoding = copy_encoding(NoPE() if encoding is None else encoding)
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
        inputs = self._unpack(inputs)
        positions = inputs.get("positions")
        if positions is None:
            positions = self.sample_positions(inputs, training=training)
        features, _ = self.features(
            inputs["token_ids"],
            self.by_layer(positions),
            mask=self.padding_mask(inputs),
            length=inputs.get("reference_length"),
            training=training,
            **self.memory(inputs, training),
        )
        return self.logits(features)

    def sample_positions(self, inputs, *, training=None):
        """Samples the positions of the tokens.

        Args:
            inputs: Dict of checked inputs, as in a call of the model.
            training: bool. Whether to sample as in training.

        Returns:
            Positions `(T,)` or `(B, T)`; with `draw="layer"`, a list of the
            positions for each layer.
        """
        self.encoding.sampler.check_inputs(inputs["token_ids"])
        draws = self.num_layers if self.draw == "layer" else 1
        positions = [
            self.encoding.find_positions(
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
        mask=None,
        length=None,
        memory=None,
        memory_positions=None,
        memory_mask=None,
        cache=None,
        cache_update_index=None,
        training=None,
        **kwargs,
    ):
        """Maps token ids `(B, T)` to features `(B, T, M)` before the head.

        Args:
            token_ids: int32 `(B, T)`, checked.
            positions: List of the positions for each block. With a cache, they
                are the positions of all tokens that it has room for.
            mask: Boolean tensor `(B, T)`, or `(B, S)` with a cache, true for
                real tokens; or `None`.
            length: Length of the whole sequence, as in `MultiHeadAttention`.
            memory: `(B, S, M)`, the sequence to attend to, or `None` if there
                is none or the cache has it.
            memory_positions: Positions of the memory, or `None`.
            memory_mask: Boolean tensor `(B, S)`, or `None`.
            cache: List of the caches of the blocks, or `None`.
            cache_update_index: int or scalar int tensor. Index in the cache
                of the first token of `token_ids`; `None` without a cache.
            training: bool. Whether to apply dropout.
            **kwargs: Further arguments of `_apply_blocks`.

        Returns:
            Tuple of the features and the list of updated caches, which is
            empty without a cache.
        """
        x, contexts = self._enter(
            token_ids,
            positions,
            mask=mask,
            length=length,
            memory=memory,
            memory_positions=memory_positions,
            memory_mask=memory_mask,
            cache=cache,
            cache_update_index=cache_update_index,
            training=training,
        )
        x, new_cache = self._apply_blocks(
            x, contexts, cache, memory=memory, training=training, **kwargs
        )
        return self._end(x, training=training), new_cache

    def _enter(
        self,
        token_ids,
        positions,
        *,
        mask,
        length,
        memory=None,
        memory_positions=None,
        memory_mask=None,
        cache=None,
        cache_update_index=None,
        training=None,
    ):
        """Computes what the blocks get; `features` describes the arguments.

        Returns:
            Tuple of the input of the first block, `(B, T, M)`, and the
            contexts of self- and cross-attention, a pair for each block.
        """
        own = _once(
            lambda of_layer: _slice_positions(
                of_layer, cache_update_index, token_ids
            ),
            positions,
        )
        x = self._begin(token_ids, own[0], training=training)
        if self.encoding.stage is not None:
            for (of_layer,) in _distinct(positions):
                x = mark_by_positions(x, of_layer)
        if self.causal:
            for pair in _distinct(own, positions):
                x = guard_order(
                    *(x, self.encoding, *pair),
                    index=cache_update_index,
                    mask=mask,
                )
        contexts = self._make_contexts(
            x, own, positions, mask, length, cache, cache_update_index
        )
        memory_contexts = self._make_memory_contexts(
            x, own, memory, memory_positions, memory_mask, cache
        )
        return x, list(zip(contexts, memory_contexts, strict=True))

    def _make_contexts(self, x, own, positions, mask, length, cache, index):
        """Makes the contexts of the self-attention of the blocks."""
        attention = self.blocks[0].attention_layer
        if length is None and attention.encoding.uses_length:
            length = find_sequence_length(mask, cache and cache[0]["attention"])

        def make(own, positions):
            return make_context(
                attention,
                x,
                x if cache is None else cache[0]["attention"][0],
                positions=own,
                key_positions=own if cache is None else positions,
                new_positions=own,
                key_mask=mask,
                causal=self.causal,
                length=length,
                index=index,
            )

        return _once(make, own, positions)

    def _make_memory_contexts(self, x, own, memory, positions, mask, cache):
        """Makes the contexts of the cross-attention of the blocks."""
        if not self.blocks[0].cross_attention:
            return [None] * len(own)
        attention = self.blocks[0].cross_attention_layer

        def make(own):
            key_positions = own if positions is None else positions
            new = memory is not None
            return make_context(
                attention,
                x,
                memory if cache is None else cache[0]["cross_attention"][0],
                positions=own,
                key_positions=key_positions,
                new_positions=key_positions if new else None,
                key_mask=mask,
                own=False,
                new=new,
                index=0 if new and cache is not None else None,
            )

        return _once(make, own)

    def _begin(self, token_ids, positions, *, training=None):
        """Returns the input of the first block, `(B, T, M)`."""
        x = self._embed(token_ids)
        if self.encoding.stage == "embeddings":
            x = self.encoding.add_to_embeddings(x, positions)
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

    def _apply_blocks(self, x, contexts, cache, *, memory=None, training=None):
        """Applies the blocks one after the other.

        Args:
            x: `(B, T, M)`.
            contexts: List of the contexts of self- and cross-attention, a
                pair for each block.
            cache: List of the caches of the blocks, or `None`.
            memory: `(B, S, M)`, the sequence to attend to, or `None`.
            training: bool. Whether to apply dropout.

        Returns:
            Tuple of `(B, T, M)` and the list of updated caches, which is empty
            without a cache.
        """
        new_cache = []
        for layer, block in enumerate(self.blocks):
            own, other = contexts[layer]
            options = {"context": own, "training": training}
            if other is not None:
                options |= {"memory": memory, "memory_context": other}
            if cache is None:
                x = block(x, **options)
                continue
            x, of_layer = block(x, cache=cache[layer], **options)
            new_cache.append(of_layer)
        return x, new_cache

    def _embed(self, token_ids):
        """Returns scaled embeddings, NaN for examples with invalid ids."""
        scale = self.embedding_scale
        scale = self.model_dim**0.5 if scale is None else scale
        # Ids are invalid only if a compiled program finds it out.
        x = self.embedding(ops.maximum(token_ids, 0)) * scale
        return mark_like(x, token_ids)

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
            Dict of the checked inputs. Examples for which an input proves
            wrong only when the program runs have invalid ids.

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
        ids = self._read_token_ids(inputs["token_ids"])
        if "lengths" in names:
            lengths = read_lengths(
                inputs["lengths"], ids, name=self.input_name("lengths")
            )
            inputs["lengths"], ids = lengths, mark_like(ids, lengths)
        if "padding_mask" in names:
            inputs["padding_mask"], ids = read_mask(
                inputs["padding_mask"],
                ids,
                name=self.input_name("padding_mask"),
            )
        inputs["token_ids"] = ids
        if "reference_length" in names:
            inputs["reference_length"] = read_reference_length(
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
        return inputs

    def _read_token_ids(self, token_ids):
        return read_token_ids(
            self.input_name("token_ids"), token_ids, self.vocabulary_size
        )

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
        lengths = ops.reshape(ops.cast(inputs["lengths"], "int32"), (-1, 1))
        return ops.broadcast_to(ops.less(tokens, lengths), shape)

    def compute_mask(self, inputs, previous_mask=None):
        return None

    def compute_output_spec(self, inputs, training=None):
        inputs = self._unpack(inputs)
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


def _once(function, *lists):
    """Maps lists for the blocks, once for the same entries.

    Args:
        function: Function of one entry of each list.
        *lists: Lists of equal length.

    Returns:
        List of what the function returned.
    """
    found = {
        _identify(entries): function(*entries) for entries in _distinct(*lists)
    }
    return [found[_identify(entries)] for entries in zip(*lists, strict=True)]


def _distinct(*lists):
    """Lists the entries of some lists side by side, the same ones once."""
    together = list(zip(*lists, strict=True))
    return {_identify(entries): entries for entries in together}.values()


def _identify(entries):
    return tuple(map(id, entries))


def _slice_positions(positions, index, token_ids):
    """Slices these tokens' positions out of the full sequence's."""
    found = find_new_positions(positions, index, token_ids)
    return positions if found is None else found


def _get_layer_encoding(encoding, layer):
    """Returns the encoding for one block, a copy if weights are not shared."""
    if encoding is None or encoding.share_layers or layer == 0:
        return encoding
    return copy_encoding(encoding)


def copy_encoding(encoding):
    """Returns an encoding of the same configuration with its own weights."""
    return type(encoding).from_config(encoding.get_config())
