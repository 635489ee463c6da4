"""Settings of Hugging Face, and the rates that their formulas give."""

import json
import math

import numpy as np
import pytest

from keras_lengen.layers import (
    ALiBi,
    LongRoPE,
    NTKRoPE,
    RandomizedRoPE,
    RoPE,
    YaRN,
)
from keras_lengen.retrofit import from_rope_parameters, to_rope_parameters
from tests.keras_lengen.layers.encodings.test_rates import (
    llama_rates,
    plain_rates,
    yarn_rates,
)
from tests.keras_lengen.layers.encodings.turns import (
    measure_magnitude,
    measure_rates,
)
from tests.refusals import refuses

WIDTH, ORIGINAL, LENGTH = 16, 2048, 9000
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
LONG = {
    "short_factor": [1.0 + pair / 8 for pair in range(8)],
    "long_factor": [1.0 + pair for pair in range(8)],
}
TYPES = {
    "default": {},
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 2.0},
    "yarn": {"factor": 8.0},
    "yarn with its factor": {"factor": 8.0, "attention_factor": 1.25},
    "yarn of DeepSeek": {"factor": 40.0, "mscale": 1.0, "mscale_all_dim": 0.7},
    "yarn without whole pairs": {"factor": 8.0, "truncate": False},
    "longrope": {"factor": 4.0, **LONG},
    "llama3": {"factor": 8.0, **LLAMA3},
}


def find_expected(kind, settings):
    """Rates and magnitude by the definitions there."""
    factor, magnitude = settings.get("factor", 1.0), 1.0
    rates = plain_rates(WIDTH)
    if kind == "linear":
        rates = rates / factor
    elif kind == "dynamic":
        scale = factor * LENGTH / ORIGINAL - (factor - 1)
        rates = plain_rates(WIDTH, 1e4 * scale ** (WIDTH / (WIDTH - 2)))
    elif kind == "yarn":
        truncate = settings.get("truncate", True)
        rates = yarn_rates(WIDTH, ORIGINAL, factor, truncate=truncate)
        log = 0.1 * math.log(factor)
        first, second = (
            settings.get(*pair)
            for pair in (("mscale", 1), ("mscale_all_dim", 0))
        )
        own = (first * log + 1) / (second * log + 1)
        magnitude = settings.get("attention_factor", own)
    elif kind == "longrope":
        rates = rates / settings["long_factor"]
        magnitude = math.sqrt(1 + math.log(factor) / math.log(ORIGINAL))
    elif kind == "llama3":
        rates = llama_rates(WIDTH, factor, ORIGINAL, 1, 4, 1e4)
    return rates, magnitude


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("name", TYPES)
def test_rates_are_those_of_the_formulas(name, version):
    kind, _, _ = name.partition(" ")
    settings = TYPES[name]
    if version == 5:
        config = {
            "rope_parameters": {
                **{"rope_type": kind, "rope_theta": 1e4, **settings},
                "original_max_position_embeddings": ORIGINAL,
            }
        }
    else:
        scaling = {"type": kind, **settings} if settings else None
        config = {"rope_theta": 1e4, "rope_scaling": scaling}
    config["max_position_embeddings"] = ORIGINAL
    config = {"hidden_size": 64, **json.loads(json.dumps(config))}
    encoding = from_rope_parameters(config, layout="interleaved")
    written = json.loads(json.dumps(to_rope_parameters(encoding)))
    assert written["rope_type"] == kind
    again = from_rope_parameters(written, layout="interleaved")
    rates, magnitude = find_expected(kind, settings)
    for made in (encoding, again):
        found = measure_rates(made, WIDTH, length=LENGTH)
        np.testing.assert_allclose(found, rates, rtol=2e-6)
        found = measure_magnitude(made, WIDTH, length=LENGTH)
        np.testing.assert_allclose(found, magnitude, rtol=1e-6)


def test_parts_of_heads_and_the_names_of_other_models():
    config = {"partial_rotary_factor": 0.25, "rope_theta": 1e6}
    assert from_rope_parameters(config).rotary_fraction == 0.25
    written = to_rope_parameters(from_rope_parameters(config))
    assert written == {"rope_type": "default", **config}
    neox = from_rope_parameters({"rotary_pct": 0.5, "rotary_emb_base": 500})
    assert (neox.rotary_fraction, neox.max_wavelength) == (0.5, 500)
    assert from_rope_parameters({}).layout == "halves"
    # Phi-3 gives two lengths instead of a factor.
    phi = {
        "max_position_embeddings": 131072,
        "original_max_position_embeddings": 4096,
        "rope_scaling": {"type": "su", **LONG},
    }
    assert from_rope_parameters(phi).scaling_factor == 32


@refuses(
    (None, "config must be a dict, .* got None"),
    ({"rope_scaling": "linear"}, "rope_parameters must be a dict; got 'li"),
    ({"rope_type": "mrope"}, "rope_type 'mrope' is not known here; known"),
    ({"rope_type": "linear"}, "the settings need factor; got"),
    ({"rope_type": "yarn", "factor": 2.0}, "need original_max_position_e"),
    (
        {"rope_type": "default", "mrope_section": [1, 2]},
        "have mrope_section, which may change the formula",
    ),
    (
        {"rope_parameters": {"full_attention": {}, "sliding": {}}},
        r"each of full_attention, sliding: .*\['full_attention'\]",
    ),
    (
        {
            **{"rope_type": "longrope", "factor": 2.0, **LONG},
            "attention_factor": 1.5,
            "original_max_position_embeddings": 4096,
        },
        r"attention_factor=1\.5 is not the factor of LongRoPE, 1\.04",
    ),
)
def test_settings_that_describe_nothing_known(config):
    from_rope_parameters(config)


@refuses(
    (ALiBi(), "encoding must be one of RoPE, .* got a ALiBi"),
    (RandomizedRoPE(max_position=64), "must be one of .* RandomizedRoPE"),
    (RoPE(fastest_fraction=0.5), "describe no fastest_fraction; got 0.5"),
    (NTKRoPE(scaling_factor=2), "no NTKRoPE of a fixed factor: give RoPE"),
    (YaRN(original_length=64), "give its scaling_factor"),
    (LongRoPE(original_length=64), "need the short_factors and long_fact"),
    (
        YaRN(original_length=4, scaling_factor=2),
        "slows all pairs alike only with attention_factor=1",
    ),
)
def test_encodings_that_no_settings_describe(encoding):
    to_rope_parameters(encoding)
