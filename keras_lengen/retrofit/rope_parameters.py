"""Rotary encodings from and to the settings of models of Hugging Face."""

import math
from collections.abc import Mapping
from typing import Any, Literal

from keras_lengen.checks.arguments import described
from keras_lengen.layers.encodings.llama3_rope import Llama3RoPE
from keras_lengen.layers.encodings.long_rope import LongRoPE
from keras_lengen.layers.encodings.ntk_rope import NTKRoPE
from keras_lengen.layers.encodings.rope import RoPE
from keras_lengen.layers.encodings.yarn import YaRN
from keras_lengen.layers.positions.ordinal_positions import OrdinalPositions

_LENGTH = "original_max_position_embeddings"
_READ = {
    *("rope_type", "type", "rope_theta", "partial_rotary_factor", "factor"),
    *(_LENGTH, "beta_fast", "beta_slow", "truncate", "attention_factor"),
    *("mscale", "mscale_all_dim", "short_factor", "long_factor"),
    *("low_freq_factor", "high_freq_factor"),
}
"""Keys that are read. Which of them matter depends on the type."""


def from_rope_parameters(
    config: Mapping[str, Any],
    *,
    layout: Literal["interleaved", "halves"] = "halves",
) -> RoPE:
    """Makes the rotary encoding that a `config.json` of Hugging Face describes.

    | `rope_type` | encoding |
    |---|---|
    | `default` | `RoPE` |
    | `linear` | `YaRN` with `attention_factor=1` that slows all pairs alike |
    | `dynamic` | `NTKRoPE` with an `original_length` |
    | `yarn` | `YaRN` |
    | `longrope` | `LongRoPE` |
    | `llama3` | `Llama3RoPE` |

    Args:
        config: Dict, the content of `config.json`, or its `rope_parameters`
            (`rope_theta` and `rope_scaling` in versions of transformers below
            5). Lengths that these leave out are `max_position_embeddings`.
        layout: str. Which features of a head form a pair. Most models have
            `"halves"`; GPT-J, Cohere and a few others have `"interleaved"`.

    Returns:
        A `RoPE` or a subclass.

    Raises:
        ValueError: If the type is another one, a setting is missing, or one
            would change the formula and is not known.

    Example:

    >>> from keras_lengen.retrofit import from_rope_parameters
    >>> encoding = from_rope_parameters(
    ...     {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0,
    ...      "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    ...      "original_max_position_embeddings": 8192})
    >>> encoding.scaling_factor, encoding.layout
    (8.0, 'halves')

    Reference: `modeling_rope_utils` of the package transformers.
    """
    if not isinstance(config, Mapping):
        raise ValueError(
            "config must be a dict, the content of a config.json; got "
            f"{described(config)}."
        )
    settings = _find_settings(config)
    kind = settings.get("rope_type", settings.get("type", "default"))
    # The name of LongRoPE in the first models that have it.
    kind = {"su": "longrope", None: "default"}.get(kind, kind)
    if kind not in _MAKE:
        raise ValueError(
            f"rope_type {described(kind)} is not known here; known are "
            f"{', '.join(_MAKE)}."
        )
    unknown = settings.keys() - _READ
    if unknown:
        raise ValueError(
            f"the settings have {', '.join(sorted(unknown))}, which may change "
            "the formula and are not known here."
        )
    common = {
        "max_wavelength": settings.get("rope_theta") or 10_000.0,
        "rotary_fraction": settings.get("partial_rotary_factor") or 1.0,
        "layout": layout,
    }
    return _MAKE[kind](settings, common)


def _find_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a config as those of `rope_parameters`."""
    nested = config.get("rope_parameters", config.get("rope_scaling"))
    if nested is None:
        # The settings themselves, or a model without scaling.
        nested = config if {"rope_type", "type"} & config.keys() else {}
    if not isinstance(nested, Mapping):
        raise ValueError(
            f"rope_parameters must be a dict; got {described(nested)}."
        )
    settings = dict(nested)
    kinds = [n for n, of in settings.items() if isinstance(of, Mapping)]
    if kinds:
        raise ValueError(
            f"rope_parameters has settings for each of {', '.join(kinds)}: "
            f"give those of one kind of layers, such as "
            f"config['rope_parameters'][{kinds[0]!r}]."
        )
    # Newer models have all in `rope_parameters`.
    for name in ("rope_theta", "partial_rotary_factor", _LENGTH):
        if settings.get(name) is None and config.get(name) is not None:
            settings[name] = config[name]
    # The names of GPT-NeoX.
    for name, other in (
        ("rope_theta", "rotary_emb_base"),
        ("partial_rotary_factor", "rotary_pct"),
    ):
        if settings.get(name) is None:
            settings[name] = config.get(other)
    longest = settings.pop("max_position_embeddings", None)
    longest = config.get("max_position_embeddings", longest)
    if longest is not None:
        # The released models of LongRoPE give both lengths instead.
        if settings.get("factor") is None and settings.get(_LENGTH):
            settings["factor"] = longest / settings[_LENGTH]
        if settings.get(_LENGTH) is None:
            settings[_LENGTH] = longest
    return settings


def _need(settings: Mapping[str, Any], name: str) -> Any:
    if settings.get(name) is None:
        raise ValueError(
            f"the settings need {name}; got {', '.join(sorted(settings))}."
        )
    return settings[name]


def _make_linear(settings: Mapping[str, Any], common: dict[str, Any]) -> RoPE:
    # Pairs with fewer turns than `beta_slow` are slowed: none has so many.
    return YaRN(
        original_length=1,
        scaling_factor=_need(settings, "factor"),
        beta_slow=1,
        beta_fast=2,
        attention_factor=1.0,
        **common,
    )


def _make_dynamic(settings: Mapping[str, Any], common: dict[str, Any]) -> RoPE:
    return NTKRoPE(
        scaling_factor=_need(settings, "factor"),
        original_length=_need(settings, _LENGTH),
        **common,
    )


def _make_yarn(settings: Mapping[str, Any], common: dict[str, Any]) -> RoPE:
    factor = _need(settings, "factor")
    magnitude = settings.get("attention_factor")
    part, share = settings.get("mscale"), settings.get("mscale_all_dim")
    if magnitude is None and part and share:
        log = 0.1 * math.log(factor)
        magnitude = (part * log + 1) / (share * log + 1)
    truncate = settings.get("truncate")
    return YaRN(
        original_length=_need(settings, _LENGTH),
        scaling_factor=factor,
        beta_fast=settings.get("beta_fast") or 32,
        beta_slow=settings.get("beta_slow") or 1,
        attention_factor=magnitude,
        truncate=True if truncate is None else truncate,
        **common,
    )


def _make_long(settings: Mapping[str, Any], common: dict[str, Any]) -> RoPE:
    encoding = LongRoPE(
        original_length=_need(settings, _LENGTH),
        scaling_factor=max(_need(settings, "factor"), 1.0),
        short_factors=tuple(_need(settings, "short_factor")),
        long_factors=tuple(_need(settings, "long_factor")),
        **common,
    )
    given = settings.get("attention_factor")
    own = encoding._find_magnitude(1)
    if given is not None and not math.isclose(given, own, rel_tol=1e-6):
        raise ValueError(
            f"attention_factor={given} is not the factor of LongRoPE, {own}, "
            "which follows from the lengths."
        )
    return encoding


def _make_llama3(settings: Mapping[str, Any], common: dict[str, Any]) -> RoPE:
    return Llama3RoPE(
        scaling_factor=_need(settings, "factor"),
        original_length=_need(settings, _LENGTH),
        low_frequency_factor=_need(settings, "low_freq_factor"),
        high_frequency_factor=_need(settings, "high_freq_factor"),
        **common,
    )


_MAKE = {
    "default": lambda settings, common: RoPE(**common),
    "linear": _make_linear,
    "dynamic": _make_dynamic,
    "yarn": _make_yarn,
    "longrope": _make_long,
    "llama3": _make_llama3,
}


def to_rope_parameters(encoding: RoPE) -> dict[str, Any]:
    """Returns the settings of Hugging Face for a rotary encoding.

    They are the `rope_parameters` of a `config.json`. With `dynamic`, the
    model's `max_position_embeddings` must be the `original_length`. A model has
    the layout of its code, mostly `"halves"`.

    Args:
        encoding: `RoPE`, `NTKRoPE`, `YaRN`, `LongRoPE` or `Llama3RoPE` with
            ordinal positions.

    Returns:
        Dict that a JSON file can hold.

    Raises:
        ValueError: If no settings describe the encoding.

    Example:

    >>> from keras_lengen.layers import YaRN
    >>> from keras_lengen.retrofit import to_rope_parameters
    >>> settings = to_rope_parameters(
    ...     YaRN(original_length=4096, scaling_factor=8, layout="halves"))
    >>> settings["rope_type"], settings["factor"]
    ('yarn', 8)

    Reference: `modeling_rope_utils` of the package transformers.
    """
    describe = _DESCRIBE.get(type(encoding))
    if describe is None:
        names = ", ".join(kind.__name__ for kind in _DESCRIBE)
        raise ValueError(
            f"encoding must be one of {names}; got {described(encoding)}."
        )
    if type(encoding.sampler) is not OrdinalPositions:
        raise ValueError(
            "rope_parameters describe no positions, and encoding has "
            f"{type(encoding.sampler).__name__}: give the encoding that the "
            "model computes with in use, with ordinal positions."
        )
    if encoding.fastest_fraction != 1:
        raise ValueError(
            "rope_parameters describe no fastest_fraction; got "
            f"{encoding.fastest_fraction}."
        )
    settings = {"rope_theta": encoding.max_wavelength, **describe(encoding)}
    if encoding.rotary_fraction != 1:
        settings["partial_rotary_factor"] = encoding.rotary_fraction
    return settings


def _describe_ntk(encoding: NTKRoPE) -> dict[str, Any]:
    if encoding.original_length is None:
        raise ValueError(
            "rope_parameters describe no NTKRoPE of a fixed factor: give "
            "RoPE(max_wavelength=b * s ** (R / (R - 2))), which is the same "
            "for heads of R rotated features."
        )
    return {
        "rope_type": "dynamic",
        "factor": encoding.scaling_factor,
        _LENGTH: encoding.original_length,
    }


def _describe_yarn(encoding: YaRN) -> dict[str, Any]:
    if encoding.scaling_factor is None:
        raise ValueError(
            "rope_parameters describe no YaRN whose factor follows from the "
            "length: give its scaling_factor."
        )
    if encoding.beta_slow > encoding.original_length / (2 * math.pi):
        if encoding.attention_factor != 1:
            raise ValueError(
                "rope_parameters describe a YaRN that slows all pairs alike "
                "only with attention_factor=1."
            )
        return {"rope_type": "linear", "factor": encoding.scaling_factor}
    settings = {
        "rope_type": "yarn",
        "factor": encoding.scaling_factor,
        _LENGTH: encoding.original_length,
        "beta_fast": encoding.beta_fast,
        "beta_slow": encoding.beta_slow,
        "truncate": encoding.truncate,
    }
    if encoding.attention_factor is not None:
        settings["attention_factor"] = encoding.attention_factor
    return settings


def _describe_long(encoding: LongRoPE) -> dict[str, Any]:
    short, long = encoding.short_factors, encoding.long_factors
    if short is None or long is None:
        raise ValueError(
            "rope_parameters need the short_factors and long_factors of "
            "LongRoPE, one for each pair: give both."
        )
    return {
        "rope_type": "longrope",
        "factor": encoding.scaling_factor,
        _LENGTH: encoding.original_length,
        "short_factor": list(short),
        "long_factor": list(long),
    }


def _describe_llama3(encoding: Llama3RoPE) -> dict[str, Any]:
    return {
        "rope_type": "llama3",
        "factor": encoding.scaling_factor,
        _LENGTH: encoding.original_length,
        "low_freq_factor": encoding.low_frequency_factor,
        "high_freq_factor": encoding.high_frequency_factor,
    }


_DESCRIBE = {
    RoPE: lambda encoding: {"rope_type": "default"},
    NTKRoPE: _describe_ntk,
    YaRN: _describe_yarn,
    LongRoPE: _describe_long,
    Llama3RoPE: _describe_llama3,
}
