"""A model of KerasHub with new positions."""

import weakref
from typing import Any, Literal, Self

import keras

from keras_lengen.checks.arguments import Choice, Instance, Optional
from keras_lengen.checks.inputs import read_positions
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.encodings.learned_encoding import LearnedEncoding
from keras_lengen.layers.positions.base import PositionSampler
from keras_lengen.layers.positions.ordinal_positions import OrdinalPositions
from keras_lengen.layers.sublayer_policies import (
    rounds_inputs,
    set_quantization,
)
from keras_lengen.models.programs import forget_programs
from keras_lengen.retrofit.changes import MARK, Changes
from keras_lengen.retrofit.families import RotaryFamily, find_family
from keras_lengen.retrofit.rotary_patch import change_attentions
from keras_lengen.retrofit.shared_positions import (
    Pass,
    SharedPositions,
    find_lengths,
)
from keras_lengen.retrofit.table_patch import change_embedding
from keras_lengen.types import Tensor


@keras.saving.register_keras_serializable(package="keras_lengen")
class RetrofittedModel(keras.Model):
    """Gives a backbone of KerasHub other positions, or another encoding.

    The backbone is changed in place and keeps its weights: none is copied.
    Without a sampler and an encoding it computes exactly what it computed
    before, unless `positions` are given. `restore` undoes the change.

    All layers, and all steps of one generation, share one draw of the sampler.
    It changes with every training step, and with every call of `generate` of a
    task that `make_task` made; `refresh` changes it at other times.

    What an encoding changes depends on the family of the backbone
    (`keras_lengen.retrofit.FAMILIES`):

    - Llama, Mistral, Mixtral, Phi 3, Qwen, Gemma and GPT-NeoX rotate queries
      and keys. A rotary encoding replaces this rotation, and any scaling of it
      that the model had; in Gemma 3, that of the global layers. It keeps the
      model's base of the frequencies, rotated features and layout, whatever
      its arguments say. A bias, such as `ALiBi`, is added to the scores, and
      nothing is rotated. `NoPE` only turns the rotation off (DroPE).
    - GPT-2, OPT, BERT, DistilBERT and RoBERTa add rows of a table to the
      embeddings.
      `LearnedEncoding(max_position=...)` extends the table,
      `SinusoidalEncoding` replaces it, `NoPE` leaves it out. Without an
      encoding, positions between two integers read points between two rows.

    Call arguments:
        inputs: Dict of the backbone's inputs, such as `token_ids` and
            `padding_mask`. It may have `positions` `(T,)` or `(B, T)`, which
            then replace those of the sampler.
        training: bool or `None`, whether the call belongs to training.

    Args:
        backbone: Backbone of KerasHub, such as
            `keras_hub.models.Llama3Backbone.from_preset(...)`. Tasks made
            from it earlier keep their compiled programs, which have the old
            positions: make new ones with `make_task`.
        sampler: `PositionSampler`, or `None` for that of the encoding, by
            default 0, 1, 2, ... Samplers that read token ids or give pairs
            are not possible.
        encoding: `PositionalEncoding`, or `None` to keep the backbone's own.
        table: str, how the table of `LearnedEncoding` begins. `"interpolated"`:
            the rows of the model's table, with others between them, so that
            the first and the last rows stay. `"tiled"`: the model's rows,
            repeated. `"initialized"`: the model's rows, and after them random
            ones of the same mean and standard deviation, which need training.

    Returns:
        What the backbone returns.

    Raises:
        ValueError: If the family of the backbone is unknown or takes no such
            encoding, if the backbone is changed already, or if an argument is
            wrong.
        RuntimeError: If the internals of the installed KerasHub differ from
            those of the tested versions.

    Example:

    >>> import keras_hub  # doctest: +SKIP
    >>> from keras import ops
    >>> from keras_lengen.layers import SkippedPositions, YaRN
    >>> from keras_lengen.retrofit import RetrofittedModel
    >>> backbone = keras_hub.models.LlamaBackbone(
    ...     vocabulary_size=64, num_layers=2, num_query_heads=4,
    ...     num_key_value_heads=2, hidden_dim=32, intermediate_dim=64
    ... )  # doctest: +SKIP
    >>> model = RetrofittedModel(
    ...     backbone,
    ...     sampler=SkippedPositions(max_position=512),
    ...     encoding=YaRN(original_length=128, scaling_factor=4),
    ... )  # doctest: +SKIP
    >>> task = model.make_task(
    ...     keras_hub.models.LlamaCausalLM)  # doctest: +SKIP
    >>> inputs = {
    ...     "token_ids": ops.array([[5, 9, 1, 0]]),
    ...     "padding_mask": ops.array([[1, 1, 1, 0]])}
    >>> model(inputs).shape  # doctest: +SKIP
    TensorShape([1, 4, 32])
    >>> model.restore() is backbone  # doctest: +SKIP
    True

    Reference: skipped positions, Zhu et al., 2024
    (https://arxiv.org/abs/2309.10400); no positions after training with them,
    Gelberg et al., 2025 (https://arxiv.org/abs/2512.12167). The encodings name
    their own.
    """

    def __init__(
        self,
        backbone: Any,
        *,
        sampler: PositionSampler | None = None,
        encoding: PositionalEncoding | None = None,
        table: Literal["interpolated", "tiled", "initialized"] = "interpolated",
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        family = find_family(backbone)
        if MARK in vars(backbone):
            raise ValueError(
                f"this {type(backbone).__name__} is changed already: call "
                "`restore()` of the model that changed it first."
            )
        sampler = _find_sampler(sampler, encoding)
        _check_encoding(encoding, family, backbone)
        Choice("interpolated", "tiled", "initialized").check("table", table)
        if table != "interpolated" and not isinstance(
            encoding, LearnedEncoding
        ):
            raise ValueError(
                f"table={table!r} says how the table of LearnedEncoding "
                "begins: give encoding=LearnedEncoding(max_position=...), or "
                "leave table out."
            )
        # Before anything is replaced.
        self._backbone_config = keras.saving.serialize_keras_object(backbone)
        self.backbone = backbone
        self.encoding = encoding
        self.table = table
        self.positions = SharedPositions(sampler)
        self._changes = Changes()
        self.tasks: weakref.WeakSet[Any] = weakref.WeakSet()
        try:
            self._change(family)
        except Exception:
            self._changes.undo()
            raise
        self.built = True

    @property
    def sampler(self) -> PositionSampler:
        """The sampler whose positions the backbone has."""
        return self.positions.sampler

    def _change(self, family: Any) -> None:
        backbone, changes = self.backbone, self._changes
        arguments = changes, family, backbone, self.positions, self.encoding
        if isinstance(family, RotaryFamily):
            change_attentions(*arguments)
        else:
            change_embedding(*arguments, self.table)
        changes.attach(backbone, [])
        changes.replace(backbone, "call", self._make_call())
        changes.replace(backbone, "get_config", _refuse_config)
        forget_programs(backbone)

    def _make_call(self) -> Any:
        """Makes the `call` of the backbone, which chooses positions once."""
        call, shared = self.backbone.call, self.positions

        def call_with_positions(
            inputs: Any, training: bool | None = None, **kwargs: Any
        ) -> Any:
            if (
                shared.find_pass() is not None
            ):  # Those of `RetrofittedModel.call`.
                return call(inputs, training=training, **kwargs)
            with shared.whole_pass(self._start_pass(inputs, training)):
                return call(inputs, training=training, **kwargs)

        return call_with_positions

    def _start_pass(self, inputs: Any, training: bool | None) -> Pass:
        if training:
            self.positions.refresh()
        tokens = keras.ops.convert_to_tensor(inputs["token_ids"])
        lengths = find_lengths(inputs["padding_mask"])
        positions = self.positions.sample(
            tokens, lengths=lengths, training=training
        )
        return Pass(positions, lengths)

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        self._check_changed()
        if not isinstance(inputs, dict):
            raise ValueError(
                "inputs must be a dict of the backbone's inputs, such as "
                f"token_ids and padding_mask; got {type(inputs).__name__}."
            )
        inputs = dict(inputs)
        positions = inputs.pop("positions", None)
        if positions is None:
            return self.backbone(inputs, training=training)
        tokens = keras.ops.convert_to_tensor(inputs["token_ids"])
        current = Pass(
            read_positions(positions, tokens),
            find_lengths(inputs["padding_mask"]),
        )
        with self.positions.whole_pass(current):
            return self.backbone(inputs, training=training)

    def make_task(self, task_class: Any, **kwargs: Any) -> Any:
        """Makes a task of KerasHub, such as a language model.

        It trains, and generates, with the new positions. Every call of its
        `generate` draws anew. Save this model, and not the task. Layers of
        the task alone, such as the head of a classifier, are not part of this
        model: `task.save_weights` and `task.load_weights` keep them.

        Args:
            task_class: Class of the task, such as
                `keras_hub.models.LlamaCausalLM`.
            **kwargs: Further arguments of the class. `preprocessor=None` is
                the default.

        Returns:
            The task, whose backbone is that of this model.
        """
        self._check_changed()
        kwargs.setdefault("preprocessor", None)
        task = task_class(backbone=self.backbone, **kwargs)
        if hasattr(task, "generate"):
            generate, refresh = task.generate, self.refresh

            def generate_anew(*args: Any, **kwargs: Any) -> Any:
                refresh()
                return generate(*args, **kwargs)

            task.generate = generate_anew
            step = task.generate_step

            def generate_step(inputs: Any, *args: Any, **kwargs: Any) -> Any:
                with self.positions.generate_from(inputs["token_ids"]):
                    return step(inputs, *args, **kwargs)

            task.generate_step = generate_step
        self.tasks.add(task)
        return task

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
                `None`: the backbone's inputs, without positions.
            **kwargs: Further arguments of `keras.Model.export`.

        Returns:
            What `keras.Model.export` returns.
        """
        self._check_changed()
        if input_signature is None:
            input_signature = [
                {
                    name: keras.InputSpec(
                        shape=each.shape, dtype=each.dtype, name=name
                    )
                    for name, each in self.backbone.input.items()
                }
            ]
        return super().export(
            filepath,
            format=format,
            verbose=verbose,
            input_signature=input_signature,
            **kwargs,
        )

    def quantize(self, *args: Any, **kwargs: Any) -> None:
        raise ValueError(
            "quantize the backbone before it gets new positions: "
            "backbone.quantize(...), then RetrofittedModel(backbone, ...)."
        )

    def refresh(self) -> None:
        """Changes the draw of the sampler."""
        self.positions.refresh()

    def restore(self) -> Any:
        """Undoes all changes of the backbone.

        Weights that were trained meanwhile stay trained, and a table that
        `LearnedEncoding` extended is the old one again. This model cannot be
        called afterwards.

        Returns:
            The backbone, as it was given.
        """
        self._changes.undo()
        for model in (self, self.backbone, *self.tasks):
            forget_programs(model)
        return self.backbone

    def _check_changed(self) -> None:
        if MARK not in vars(self.backbone):
            raise ValueError(
                "this model has given its backbone back: make a new "
                "RetrofittedModel(backbone, ...)."
            )

    def get_config(self) -> dict[str, Any]:
        serialize, encoding = keras.saving.serialize_keras_object, self.encoding
        backbone = self.backbone
        own = encoding is not None and _brings_sampler(encoding)
        return {
            **super().get_config(),
            "backbone": self._backbone_config,
            "sampler": None if own else serialize(self.sampler),
            "encoding": encoding and serialize(encoding),
            "table": self.table,
            # KerasHub does not save it.
            "quantization": serialize(
                [part.quantization_config for part in _list_rounding(backbone)]
            ),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        try:
            # Registers the classes of backbones.
            import keras_hub  # noqa: F401
        except ImportError:
            raise ImportError(
                "a RetrofittedModel needs KerasHub: install it by "
                "pip install 'keras-hub>=0.26'."
            ) from None
        load = keras.saving.deserialize_keras_object
        config = dict(config)
        for name in ("backbone", "sampler", "encoding"):
            config[name] = config[name] and load(config[name])
        quantization = load(config.pop("quantization", []))
        for part, each in zip(
            _list_rounding(config["backbone"]), quantization, strict=False
        ):
            set_quantization(part, each)
        return cls(**config)

    def compute_output_spec(
        self, inputs: Any, training: bool | None = None
    ) -> Any:
        inputs = {
            name: value for name, value in inputs.items() if name != "positions"
        }
        return self.backbone.compute_output_spec(inputs)


def _list_rounding(backbone: Any) -> list[Any]:
    """Lists the layers of a quantized backbone that round their inputs."""
    return list(filter(rounds_inputs, backbone._flatten_layers()))


def _find_sampler(
    sampler: PositionSampler | None, encoding: PositionalEncoding | None
) -> PositionSampler:
    """Finds the sampler that is given, or that of the encoding."""
    Optional(
        Instance(PositionSampler, "SkippedPositions(max_position=2048)")
    ).check("sampler", sampler)
    Optional(Instance(PositionalEncoding, "YaRN(original_length=2048)")).check(
        "encoding", encoding
    )
    if encoding is not None and _brings_sampler(encoding):
        if sampler is not None:
            raise ValueError(
                f"sampler={type(sampler).__name__} is given, but "
                f"{type(encoding).__name__} brings its own, "
                f"{type(encoding.sampler).__name__}: give only one."
            )
        sampler = encoding.sampler
    sampler = OrdinalPositions() if sampler is None else sampler
    if sampler.reads_tokens or sampler.position_axes == 2:
        raise ValueError(
            f"sampler={type(sampler).__name__} "
            + ("reads token ids" if sampler.reads_tokens else "gives pairs")
            + ", which a backbone of KerasHub has no place for: choose another "
            "sampler, such as RandomizedPositions."
        )
    if encoding is not None:
        _check_together(sampler, encoding)
    return sampler


def _check_together(
    sampler: PositionSampler, encoding: PositionalEncoding
) -> None:
    """Raises `ValueError` if an encoding cannot take a sampler's positions."""
    config = encoding.get_config()
    if "sampler" in config:
        # Its constructor checks fractions, negative numbers, reach and order.
        type(encoding).from_config({**config, "sampler": sampler})


def _brings_sampler(encoding: PositionalEncoding) -> bool:
    return type(encoding.sampler) is not OrdinalPositions


def _check_encoding(
    encoding: PositionalEncoding | None, family: Any, backbone: Any
) -> None:
    """Raises `ValueError` if a family cannot take an encoding."""
    if encoding is None or encoding.stage is None:
        return
    if encoding.reads_inputs:
        raise ValueError(
            f"encoding={type(encoding).__name__} needs the features of the "
            f"tokens, which a {type(backbone).__name__} does not pass on: "
            "choose another encoding, such as RoPE."
        )
    stages = {
        True: ("rotation", "bias"),
        False: ("embeddings",),
    }[isinstance(family, RotaryFamily)]
    if encoding.stage not in stages or encoding.position_axes == 2:
        wanted = (
            "rotates queries and keys: give it a rotary encoding, such as "
            "YaRN, a bias, such as ALiBi, or NoPE"
            if isinstance(family, RotaryFamily)
            else "adds a table to the embeddings: give it an encoding of the "
            "embeddings, such as LearnedEncoding, or NoPE"
        )
        raise ValueError(
            f"encoding={type(encoding).__name__} does not fit a "
            f"{type(backbone).__name__}, which {wanted}."
        )


def _refuse_config() -> Tensor:
    raise ValueError(
        "this backbone has new positions, which its own configuration does not "
        "describe: save the RetrofittedModel, or call its `restore()` first."
    )
