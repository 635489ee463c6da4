"""Base classes of the Transformer models."""

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any, Literal, TypeAlias, TypeVar

import keras
from keras import ops

from keras_lengen.checks.arguments import (
    Initializer,
    Integer,
    Number,
    Optional,
    check_keys,
)
from keras_lengen.checks.constructors import argument
from keras_lengen.checks.guards import mark_by_positions, mark_like
from keras_lengen.checks.inputs import (
    is_convertible,
    read_lengths,
    read_mask,
    read_reference_length,
    read_segment_ids,
    read_token_ids,
    show,
)
from keras_lengen.layers.attention.cache import (
    find_new_positions,
    find_sequence_length,
)
from keras_lengen.layers.attention.call_arguments import Cache
from keras_lengen.layers.attention.context import Context, make_context
from keras_lengen.layers.attention.multi_head import (
    MultiHeadAttention,
    check_head_groups,
)
from keras_lengen.layers.attention.token_order import guard_order
from keras_lengen.layers.block_arguments import (
    BlockArguments,
    FeedForwardRecipe,
)
from keras_lengen.layers.documents import Documents, find_documents
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.initializers import (
    copy_initializer,
    kernel_initializer,
)
from keras_lengen.layers.positions.placing import place_tokens
from keras_lengen.layers.random_layer import Dropout, RandomLayer
from keras_lengen.layers.recipe import Recipe
from keras_lengen.layers.sublayer_policies import SublayerPolicies
from keras_lengen.layers.transformer import AttentionRecipe, TransformerBlock
from keras_lengen.models.onnx_files import check_onnx_file
from keras_lengen.models.per_layer import (
    EncodingPerLayer,
    PerLayer,
    give_own_weights,
)
from keras_lengen.models.programs import Programs
from keras_lengen.types import Positions, Shape, Size, Tensor, TensorLike

T = TypeVar("T")

Inputs: TypeAlias = dict[str, Any]
"""Checked inputs of a model, by name."""

BlockCache: TypeAlias = dict[str, Cache]
"""Caches of the attention layers of a block, by their names."""


class TokenModel(SublayerPolicies, RandomLayer, keras.Model):
    """Base of the models whose inputs are token ids."""

    id_inputs: tuple[str, ...] | None = None
    """Names of the required inputs; `None`: one tensor of token ids."""

    # Otherwise TensorFlow traces every inner model of an exported model with
    # inputs that it guesses.
    _default_save_signature = None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.programs = Programs()

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Tensor:
        return super().__call__(convert_numbers(inputs), *args, **kwargs)

    def stateless_call(
        self,
        trainable_variables: Any,
        non_trainable_variables: Any,
        inputs: Any,
        **kwargs: Any,
    ) -> Any:
        """Calls the model as `keras.Layer.stateless_call` does.

        On JAX, `fit` and `evaluate` use it. The outputs have the mask of the
        padding, as those of a call.
        """
        results = super().stateless_call(
            trainable_variables, non_trainable_variables, inputs, **kwargs
        )
        # Keras sets masks in `__call__`, which it skips here.
        self._set_mask_metadata(inputs, results[0], None)
        return results

    def _maybe_symbolic_build(
        self, iterator: Any = None, data_batch: Any = None
    ) -> None:
        # Keras, with TensorFlow, builds a model under a strategy from the mean
        # of the replicas' batches. Ids and masks have no mean.
        if iterator is not None and self._distribute_strategy is not None:
            local_results = self._distribute_strategy.experimental_local_results
            batches = next(each for _, _, each in iterator)
            data_batch = keras.tree.map_structure(
                lambda batch: local_results(batch)[0], next(batches)
            )
            iterator = None
        super()._maybe_symbolic_build(iterator, data_batch)

    def export(
        self,
        filepath: Any,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Any = None,
        **kwargs: Any,
    ) -> Any:
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

        Raises:
            ValueError: If the format is `"onnx"`, with TensorFlow, and ONNX
                does not have an operation that the model needs. No file is
                left.
        """
        if input_signature is None:
            ids = keras.InputSpec(shape=(None, None), dtype="int32")
            inputs: Any = ids
            if self.id_inputs is not None:
                inputs = dict.fromkeys(self.id_inputs, ids)
            input_signature = [inputs]
        result = super().export(
            filepath,
            format=format,
            verbose=verbose,
            input_signature=input_signature,
            **kwargs,
        )
        if format == "onnx" and keras.backend.backend() == "tensorflow":
            check_onnx_file(filepath)
        return result


class ModelArguments(BlockArguments):
    """Arguments of all models, which `TransformerEncoder` describes."""

    vocabulary_size: int = argument(Integer(example=9))
    output_size: int | None = argument(Optional(Integer(example=5)))
    num_layers: int = argument(Integer(example=3))
    model_dim: int = argument(Integer(example=32))
    dropout: float = argument(default=0.1)
    embedding_dropout: float | None = argument(
        Optional(Number(0, below=1, example=0.5)), default=None
    )
    encoding: PerLayer[PositionalEncoding] = argument(
        EncodingPerLayer(), default=None
    )
    attention: PerLayer[Recipe] = argument(
        PerLayer(AttentionRecipe()), default=None
    )
    feedforward: PerLayer[Recipe] = argument(  # type: ignore[assignment]
        PerLayer(FeedForwardRecipe()), default=None
    )
    tie_embeddings: bool = argument(default=False)
    embedding_scale: float | None = argument(
        Optional(Number(example=2.0)), default=None
    )
    logit_scale: float = argument(Number(example=0.5), default=1.0)
    embeddings_initializer: Any = argument(
        Optional(Initializer(example="he_normal")), default=None
    )
    share_positions: Literal["model", "layer"] = argument(default="model")


class Transformer(ModelArguments, TokenModel):
    """Base of the encoder and the decoder: token ids to logits.

    Token ids are embedded, pass through the blocks and are mapped to logits.
    """

    causal = False
    """Whether each token attends only to itself and earlier tokens."""

    def assign(self, values: dict[str, Any]) -> None:
        # First: it says how many values a list must have.
        self.num_layers = values["num_layers"]
        resolved = {
            name: declared.resolve(values[name], self.num_layers)
            for name, declared in self.arguments().items()
            if isinstance(declared, PerLayer)
        }
        super().assign({**values, **resolved})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_head_groups(self.num_heads, self.num_key_value_heads)
        if self.model_dim % self.num_heads:
            raise ValueError(
                f"num_heads={self.num_heads} does not divide "
                f"model_dim={self.model_dim}."
            )
        if self.tie_embeddings and self.output_size != self.vocabulary_size:
            raise ValueError(
                "tie_embeddings uses the embeddings as output layer: "
                f"output_size must be vocabulary_size={self.vocabulary_size}; "
                f"got {self.output_size!r}."
            )

    def _make_layers(
        self,
        *,
        cross_attention: bool = False,
        cross_encoding: PositionalEncoding | None = None,
    ) -> None:
        """Creates and builds all layers, at the end of a constructor."""
        with self.parts_scope():
            self.embedding = self._make_embedding()
        self.dropout_layer = Dropout(
            self.dropout
            if self.embedding_dropout is None
            else self.embedding_dropout,
            dtype=self.dtype_policy,
        )
        self.kinds = self._find_kinds()
        in_attention: Iterable[Any] = self.list_encodings()
        if self.find_added_encoding() is not None:
            in_attention = repeat(None, self.num_layers)
        encodings = give_own_weights(in_attention)
        in_cross = give_own_weights(repeat(cross_encoding, self.num_layers))
        attentions = self.list_attentions()
        feedforwards = self._list_by_layer(self.feedforward)
        shared = self.list_block_arguments()
        self.blocks = [
            TransformerBlock(
                **{**shared, "feedforward": feedforwards[layer]},
                encoding=encodings[layer],
                attention=attentions[layer],
                cross_attention=cross_attention,
                cross_encoding=in_cross[layer],
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
                self.final_norm = self.make_norm("final_norm")
            if self.output_size is not None and not self.tie_embeddings:
                self.head = self._make_head()
        # No weight depends on the shape of the inputs.
        self.build((None, None))

    def _make_embedding(self) -> keras.Layer:
        initializer = self.embeddings_initializer
        if initializer is None:
            initializer = keras.initializers.TruncatedNormal(stddev=0.02)
        kind = keras.layers.Embedding
        if self.tie_embeddings:
            kind = keras.layers.ReversibleEmbedding
        embedding = kind(
            self.vocabulary_size,
            self.model_dim,
            # A copy: one initializer instance would give all models the same
            # initial values.
            embeddings_initializer=copy_initializer(initializer),
            dtype=self.dtype_policy,
            name="embedding",
        )
        # As the head, it is called with masked features; Keras would warn.
        embedding.supports_masking = True
        return embedding

    def _make_head(self) -> keras.Layer:
        return keras.layers.Dense(
            self.output_size,
            use_bias=self.use_bias is not False,
            kernel_initializer=kernel_initializer(self.kernel_initializer),
            dtype=self.part_policy("float32"),
            name="head",
        )

    # Methods and no properties, through which Keras would save encodings.
    def list_encodings(self) -> list[PositionalEncoding]:
        """Lists the encoding of each layer; blocks may have copies."""
        return self._list_by_layer(self.encoding)

    def list_attentions(self) -> list[Recipe]:
        """Lists the recipe of the self-attention of each layer."""
        return self._list_by_layer(self.attention)

    def _list_by_layer(self, value: Any) -> list[Any]:
        return value if isinstance(value, list) else [value] * self.num_layers

    def find_added_encoding(self) -> PositionalEncoding | None:
        """Finds the encoding of the embeddings, if there is one."""
        encoding = self.list_encodings()[0]
        return encoding if encoding.stage == "embeddings" else None

    def list_position_encodings(self) -> list[PositionalEncoding]:
        """Lists the encodings whose samplers give the positions of the layers.

        Layers without an encoding have the positions of the first with one.
        """
        encodings = self.list_encodings()
        acting = [each for each in encodings if each.stage is not None]
        first = (acting or encodings)[0]
        return [first if each.stage is None else each for each in encodings]

    def positions_differ_by_layer(self) -> bool:
        """Whether the positions of a token may differ between layers."""
        samplers = {id(each.sampler) for each in self.list_position_encodings()}
        return self.share_positions == "layer" or len(samplers) > 1

    def _find_kinds(self) -> tuple[int, ...]:
        """Finds for each layer the first with the same attention."""
        recipes = self.list_attentions()
        kinds = list(zip(self.list_encodings(), recipes, strict=True))
        return tuple(map(kinds.index, kinds))

    def build(self, input_shape: Shape) -> None:
        if self.built:
            return
        shape = (None, None, self.model_dim)
        self.embedding.build((None, None))
        added = self.find_added_encoding()
        if added is not None:
            added.build(shape)
        for block in self.blocks:
            block.build(shape)
        if self.final_norm is not None:
            self.final_norm.build(shape)
        if self.head is not None:
            self.head.build(shape)
        self.apply_dtype_policies()

    def call(self, inputs: Any, training: bool | None = None) -> Tensor:
        inputs = self._unpack(inputs)
        positions = inputs.get("positions")
        if positions is None:
            positions = self.sample_positions(inputs, training=training)
        features, _ = self.features(
            inputs["token_ids"],
            self.by_layer(positions),
            mask=self.padding_mask(inputs),
            length=inputs.get("reference_length"),
            documents=self.find_documents(inputs),
            training=training,
            **self.memory(inputs, training),
        )
        return self.logits(features)

    def sample_positions(
        self, inputs: Inputs, *, training: bool | None = None
    ) -> Positions | list[Positions]:
        """Samples the positions of the tokens.

        Args:
            inputs: Dict of checked inputs, as in a call of the model.
            training: bool. Whether to sample as in training.

        Returns:
            Positions `(T,)` or `(B, T)`; with `share_positions="layer"` or
            several samplers, a list of the positions for each layer.
        """

        def draw(encoding: PositionalEncoding) -> Positions:
            encoding.sampler.check_inputs(inputs["token_ids"])
            return place_tokens(
                encoding.sampler,
                inputs["token_ids"],
                lengths=inputs.get("lengths"),
                mask=inputs.get("padding_mask"),
                reference_length=inputs.get("reference_length"),
                documents=documents,
                training=training,
            )

        documents = self.find_documents(inputs)
        drawn: dict[int, Positions] = {}
        positions = []
        for layer, encoding in enumerate(self.list_position_encodings()):
            key = (
                layer
                if self.share_positions == "layer"
                else id(encoding.sampler)
            )
            if key not in drawn:
                drawn[key] = draw(encoding)
            positions.append(drawn[key])
        return positions if self.positions_differ_by_layer() else positions[0]

    def by_layer(
        self, positions: Positions | list[Positions]
    ) -> list[Positions]:
        """Returns a list of the positions for each block."""
        if self.positions_differ_by_layer() and isinstance(positions, list):
            return positions
        return [positions] * self.num_layers

    def features(
        self,
        token_ids: Tensor,
        positions: list[Positions],
        *,
        mask: Tensor | None = None,
        length: Tensor | None = None,
        documents: Documents | None = None,
        memory: Tensor | None = None,
        memory_positions: Positions | None = None,
        memory_mask: Tensor | None = None,
        memory_documents: tuple[Documents, Documents] | None = None,
        cache: list[BlockCache] | None = None,
        cache_update_index: Size | None = None,
        training: bool | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, list[BlockCache]]:
        """Maps token ids `(B, T)` to features `(B, T, M)` before the head.

        Args:
            token_ids: int32 `(B, T)`, checked.
            positions: List of the positions for each block. With a cache, they
                are the positions of all tokens that it has room for.
            mask: Boolean tensor `(B, T)`, or `(B, S)` with a cache, true for
                real tokens; or `None`.
            length: Length of the whole sequence, as in `MultiHeadAttention`.
            documents: `Documents` packed into the rows, or `None`.
            memory: `(B, S, M)`, the sequence to attend to, or `None` if there
                is none or the cache has it.
            memory_positions: Positions of the memory, or `None`.
            memory_mask: Boolean tensor `(B, S)`, or `None`.
            memory_documents: `Documents` of the tokens and of the memory, with
                ids to compare, or `None`.
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
            documents=documents,
            memory=memory,
            memory_positions=memory_positions,
            memory_mask=memory_mask,
            memory_documents=memory_documents,
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
        token_ids: Tensor,
        positions: list[Positions],
        *,
        mask: Tensor | None,
        length: Tensor | None,
        documents: Documents | None = None,
        memory: Tensor | None = None,
        memory_positions: Positions | None = None,
        memory_mask: Tensor | None = None,
        memory_documents: tuple[Documents, Documents] | None = None,
        cache: list[BlockCache] | None = None,
        cache_update_index: Size | None = None,
        training: bool | None = None,
    ) -> tuple[Tensor, list[tuple[Context, Context | None]]]:
        """Computes what the blocks get; `features` describes the arguments.

        Returns:
            Tuple of the input of the first block, `(B, T, M)`, and the
            contexts of self- and cross-attention, a pair for each block.
        """
        of_queries = _once(
            lambda of_layer: _slice_positions(
                of_layer, cache_update_index, token_ids
            ),
            positions,
        )
        x = self._begin(token_ids, of_queries[0], training=training)
        encodings = self.list_encodings()
        for encoding, *pair in _distinct(encodings, of_queries, positions):
            if encoding.stage is not None:
                x = mark_by_positions(x, pair[1])
            if self.causal:
                x = guard_order(
                    *(x, encoding, *pair),
                    index=cache_update_index,
                    mask=mask,
                    documents=None if documents is None else documents.ids,
                )
        contexts = self._make_contexts(
            *(x, of_queries, positions, mask, length, documents),
            *(cache, cache_update_index),
        )
        memory_contexts = self._make_memory_contexts(
            *(x, of_queries, memory, memory_positions, memory_mask),
            *(memory_documents, cache),
        )
        return x, list(zip(contexts, memory_contexts, strict=True))

    def _make_contexts(
        self,
        x: Tensor,
        of_queries: list[Positions],
        positions: list[Positions],
        mask: Tensor | None,
        length: Size | None,
        documents: Documents | None,
        cache: list[BlockCache] | None,
        index: Size | None,
    ) -> list[Context]:
        """Makes the contexts of the self-attention of the blocks."""

        def make(
            attention: MultiHeadAttention,
            cached: Cache | None,
            of_queries: Positions,
            positions: Positions,
        ) -> Context:
            of_all = length
            if length is None and attention.encoding.uses_length:
                of_all = find_sequence_length(
                    mask, None if cached is None else cached["key"], documents
                )
            return make_context(
                attention,
                x,
                x if cached is None else cached["key"],
                positions=of_queries,
                key_positions=of_queries if cached is None else positions,
                new_positions=of_queries,
                key_mask=mask,
                causal=self.causal,
                length=of_all,
                index=index,
                documents=None if documents is None else (documents, documents),
            )

        layers = [self.blocks[kind].attention_layer for kind in self.kinds]
        caches: list[Cache | None] = [None] * len(self.kinds)
        if cache is not None:
            caches = [cache[kind]["attention"] for kind in self.kinds]
        return _once(make, layers, caches, of_queries, positions)

    def _make_memory_contexts(
        self,
        x: Tensor,
        of_queries: list[Positions],
        memory: Tensor | None,
        positions: Positions | None,
        mask: Tensor | None,
        documents: tuple[Documents, Documents] | None,
        cache: list[BlockCache] | None,
    ) -> list[Context] | list[None]:
        """Makes the contexts of the cross-attention of the blocks."""
        if not self.blocks[0].cross_attention:
            return [None] * len(of_queries)
        attention = self.blocks[0].cross_attention_layer

        def make(of_queries: Positions) -> Context:
            key_positions = of_queries if positions is None else positions
            new = memory is not None
            return make_context(
                attention,
                x,
                memory if cache is None else cache[0]["cross_attention"]["key"],
                positions=of_queries,
                key_positions=key_positions,
                new_positions=key_positions if new else None,
                key_mask=mask,
                is_self=False,
                new=new,
                index=0 if new and cache is not None else None,
                documents=documents,
            )

        return _once(make, of_queries)

    def _begin(
        self,
        token_ids: Tensor,
        positions: Positions,
        *,
        training: bool | None = None,
    ) -> Tensor:
        """Returns the input of the first block, `(B, T, M)`."""
        x = self._embed(token_ids)
        added = self.find_added_encoding()
        if added is not None:
            x = added.add_to_embeddings(x, positions)
        if added is not None or self.embedding_dropout is not None:
            x = self.dropout_layer(x, training=training)
        return x

    def _end(self, x: Tensor, *, training: bool | None = None) -> Tensor:
        """Returns features for the head from the output of the last block."""
        if self.final_norm is not None:
            x = self.final_norm(x)
            if self.embedding_dropout is not None:
                x = self.dropout_layer(x, training=training)
        return x

    def _apply_blocks(
        self,
        x: Tensor,
        contexts: list[tuple[Context, Context | None]],
        cache: list[BlockCache] | None,
        *,
        memory: Tensor | None = None,
        training: bool | None = None,
    ) -> tuple[Tensor, list[BlockCache]]:
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
            context, memory_context = contexts[layer]
            options: dict[str, Any] = {"context": context, "training": training}
            if memory_context is not None:
                options["memory"] = memory
                options["memory_context"] = memory_context
            if cache is None:
                x = block(x, **options)
                continue
            x, of_layer = block(x, cache=cache[layer], **options)
            new_cache.append(of_layer)
        return x, new_cache

    def _embed(self, token_ids: Tensor) -> Tensor:
        """Returns scaled embeddings, NaN for examples with invalid ids."""
        scale = self.embedding_scale
        scale = self.model_dim**0.5 if scale is None else scale
        # Ids are invalid only if a compiled program finds it out.
        x = self.embedding(ops.maximum(token_ids, 0)) * scale
        # Quantized embeddings are float32.
        return mark_like(ops.cast(x, self.compute_dtype), token_ids)

    def make_cache(
        self, batch_size: Size, length: Size, memory: Tensor | None = None
    ) -> list[BlockCache]:
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

    def logits(self, features: Tensor) -> Tensor:
        """Maps features `(B, T, M)` to float32 logits `(B, T, output_size)`.

        Without an output layer, it returns the features.
        """
        if self.head is not None:
            logits = self.head(features)
        elif self.tie_embeddings:
            # With weights of half precision, the result would have it, too.
            features = ops.cast(features, "float32")
            logits = self.embedding(features, reverse=True)
        else:
            return features
        logits = ops.cast(logits, "float32")
        return logits if self.logit_scale == 1 else logits * self.logit_scale

    def _unpack(self, inputs: Any, *, new_tokens: int = 0) -> Inputs:
        """Checks the inputs and returns them as a dict.

        Args:
            inputs: Inputs of a call.
            new_tokens: int. Number of tokens that will be generated;
                `"positions"` must include their positions.

        Returns:
            Dict of the checked inputs. Examples with an input that is found to
            be wrong only when the program runs have invalid ids.

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
            "segment_ids",
            *self._further_inputs,
        }
        check_keys(inputs, known, "inputs")
        names = {name for name, value in inputs.items() if value is not None}
        self._check_names(names)
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
        if "segment_ids" in names:
            self._check_packed(names, new_tokens)
            inputs["segment_ids"], ids = read_segment_ids(
                inputs["segment_ids"], ids, name=self.input_name("segment_ids")
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

    def _check_names(self, names: set[str]) -> None:
        """Raises `ValueError` if an input is missing or one too many is given.

        Args:
            names: Set of the names of the inputs that are given.
        """
        if "token_ids" not in names:
            wanted = self.input_name("token_ids")
            given = ", ".join(map(self.input_name, sorted(names))) or "none"
            raise ValueError(
                f"inputs must have {wanted}, integers of shape (B, T); got "
                f"{given}."
            )
        if {"lengths", "padding_mask"} <= names:
            raise ValueError(
                f"give at most one of {self.input_name('lengths')} and "
                f"{self.input_name('padding_mask')}: both say which tokens "
                "are padding."
            )

    def _check_packed(self, names: set[str], new_tokens: int) -> None:
        """Raises `ValueError` if packed rows are no inputs for a call.

        Args:
            names: Set of the names of the inputs that are given.
            new_tokens: int. Number of tokens that will be generated.
        """
        name = self.input_name("segment_ids")
        if new_tokens:
            raise ValueError(
                f"{name} say that rows contain several documents, but a row "
                "continues with one: give each document a row of its own."
            )
        if "reference_length" in names:
            raise ValueError(
                f"give at most one of {name} and "
                f"{self.input_name('reference_length')}: documents have their "
                "own lengths."
            )

    def find_documents(
        self, inputs: Inputs, *, numbered: bool = True
    ) -> Documents | None:
        """Finds the documents packed into the rows, if any.

        Args:
            inputs: Dict of checked inputs.
            numbered: bool. As in `documents.find_documents`.

        Returns:
            `Documents` of the tokens, or `None`.
        """
        segment_ids = inputs.get("segment_ids")
        if segment_ids is None:
            return None
        mask = self.padding_mask(inputs)
        return find_documents(segment_ids, mask, numbered=numbered)

    def _read_token_ids(self, token_ids: TensorLike) -> Tensor:
        return read_token_ids(
            self.input_name("token_ids"), token_ids, self.vocabulary_size
        )

    def _check_positions(
        self, positions: Any, token_ids: Tensor
    ) -> Positions | list[Positions]:
        name = self.input_name("positions")
        encodings = self.list_position_encodings()
        if (
            self.positions_differ_by_layer()
            and isinstance(positions, list)
            and len(positions) == self.num_layers
            and not all(isinstance(each, int | float) for each in positions)
        ):
            return [
                encoding.given_positions(each, token_ids, name=name)
                for encoding, each in zip(encodings, positions, strict=True)
            ]
        for (encoding,) in _distinct(encodings):
            positions = encoding.given_positions(
                positions, token_ids, name=name
            )
        return positions

    input_prefix = ""
    """Prefix of the input names that callers use, for error messages."""

    def input_name(self, name: str) -> str:
        """Returns the name that callers use for an input."""
        if not self.input_prefix or name in self._further_inputs:
            return name
        return self.input_prefix + name.removeprefix("token_")

    _further_inputs: tuple[str, ...] = ()
    """Names of the additional inputs of a subclass."""

    def memory(
        self, inputs: Inputs, training: bool | None = None
    ) -> dict[str, Any]:
        """Returns the call arguments of the blocks for cross-attention."""
        return {}

    def padding_mask(self, inputs: Inputs) -> Tensor | None:
        """Returns a bool mask `(B, T)`, true for real tokens, or `None`."""
        if inputs.get("lengths") is None:
            return inputs.get("padding_mask")
        shape = ops.shape(inputs["token_ids"])
        tokens = ops.arange(shape[1], dtype="int32")
        lengths = ops.reshape(ops.cast(inputs["lengths"], "int32"), (-1, 1))
        return ops.broadcast_to(ops.less(tokens, lengths), shape)

    def compute_mask(
        self, inputs: Any, previous_mask: Tensor | None = None
    ) -> Tensor | None:
        # With it, losses and metrics of `compile` do not count padding.
        leaves = keras.tree.flatten(inputs)
        symbolic = any(isinstance(each, keras.KerasTensor) for each in leaves)
        if symbolic or not isinstance(inputs, dict):
            return None
        mask = self.padding_mask(inputs)
        return None if mask is None else ops.cast(mask, "bool")

    def compute_output_spec(
        self, inputs: Any, training: bool | None = None
    ) -> keras.KerasTensor:
        inputs = self._unpack(inputs)
        shape = inputs["token_ids"].shape
        if inputs.get("positions") is None:
            for encoding in self.list_position_encodings():
                encoding.sampler.compute_output_spec(inputs["token_ids"])
        return self._make_output_spec(shape)

    def compute_output_shape(self, inputs_shape: Any) -> Shape:
        if isinstance(inputs_shape, dict):
            inputs_shape = inputs_shape["token_ids"]
        return self._make_output_spec(inputs_shape).shape

    def _make_output_spec(self, shape: Shape) -> keras.KerasTensor:
        if self.output_size is None:
            return keras.KerasTensor(
                (*shape, self.model_dim), dtype=self.compute_dtype
            )
        return keras.KerasTensor((*shape, self.output_size), dtype="float32")


def convert_numbers(inputs: Any) -> Any:
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


def _convert(name: str, value: Any) -> Any:
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


def _once(function: Callable[..., T], *lists: list[Any]) -> list[T]:
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


def _distinct(*lists: list[Any]) -> Iterable[tuple[Any, ...]]:
    """Lists the entries of some lists side by side, the same ones once."""
    together = list(zip(*lists, strict=True))
    return {_identify(entries): entries for entries in together}.values()


def _identify(entries: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(map(id, entries))


def _slice_positions(
    positions: Positions, index: Size | None, token_ids: Tensor
) -> Positions:
    """Slices these tokens' positions out of the full sequence's."""
    found = find_new_positions(positions, index, token_ids)
    return positions if found is None else found
