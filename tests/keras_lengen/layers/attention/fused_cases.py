"""Encodings and options of fused attention that the tests compare."""

ENCODINGS = {
    "ALiBi": {},
    "HardALiBi": {},
    "NAPE": {},
    "ClippedBias": {"max_distance": 3},
    "PowerKERPLE": {},
    "LogKERPLE": {"asymmetry": 0.5},
    "BAM": {},
    "T5Bias": {"num_buckets": 8},
    "FIRE": {"hidden_dim": 5},
    "Sandwich": {"dimension": 6},
}
"""Arguments of every encoding whose bias is a function of two positions."""

OPTIONS = {
    "more keys": {
        "name": "LogKERPLE",
        "causal": True,
        "tokens": 20,
        "keys": 50,
    },
    "shared heads": {
        "name": "LogKERPLE",
        "causal": True,
        "heads": 8,
        "key_heads": 2,
        "width": 64,
        "value_width": 32,
    },
    "odd widths": {
        "name": None,
        "causal": False,
        "heads": 3,
        "width": 8,
        "value_width": 5,
    },
    "several blocks": {
        "name": "LogKERPLE",
        "causal": True,
        "batch": 1,
        "tokens": 1100,
        "window": 300,
        "sink_tokens": 3,
    },
    "window and cap": {
        "name": "LogKERPLE",
        "causal": False,
        "batch": 1,
        "tokens": 600,
        "keys": 700,
        "window": 100,
        "soft_cap": 2.0,
    },
    "dropout": {
        "name": "LogKERPLE",
        "causal": True,
        "padding": 5,
        "dropout": 0.3,
    },
}
"""Arguments of `fused_outputs.find_errors`."""
