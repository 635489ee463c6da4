"""Tiny backbones of KerasHub with random weights, one of each family."""

import keras
import numpy as np

VOCABULARY = 40
SIZES = {
    "vocabulary_size": VOCABULARY,
    "num_layers": 2,
    "hidden_dim": 32,
    "intermediate_dim": 48,
}
GROUPED = {**SIZES, "num_query_heads": 4, "num_key_value_heads": 2}
PLAIN = {**SIZES, "num_heads": 4}
WINDOW = {"use_sliding_window_attention": True, "sliding_window_size": 8}
QWEN3 = {"head_dim": 16, "sliding_window_size": 8}
EXPERTS = {"num_experts": 2, "top_k": 1}
MANY_EXPERTS = {**EXPERTS, "moe_intermediate_dim": 16, "norm_top_k_prob": True}
ROTARY = {
    # Other bases than those of the encodings, which must not replace them.
    "Llama": {**GROUPED, "rope_max_wavelength": 300},
    "Llama3": {**GROUPED, "rope_max_wavelength": 700},
    "Mistral": {**GROUPED, "sliding_window": 64, "rope_max_wavelength": 500},
    "Mixtral": {**GROUPED, **EXPERTS, "rope_max_wavelength": 400},
    "Phi3": {**GROUPED, "rope_max_wavelength": 600},
    "QwenMoe": {
        **GROUPED,
        **MANY_EXPERTS,
        **WINDOW,
        "shared_expert_intermediate_dim": 16,
    },
    "Qwen3Moe": {**GROUPED, **MANY_EXPERTS, **QWEN3},
    "Qwen": {**GROUPED, **WINDOW},
    "Qwen3": {**GROUPED, **QWEN3},
    "Gemma": {
        **GROUPED,
        **WINDOW,
        **{"head_dim": 8, "attention_logit_soft_cap": 20.0},
    },
    "Gemma3": {
        **GROUPED,
        **WINDOW,
        # The sixth layer is the first one without a window.
        **{"num_layers": 6, "head_dim": 8, "image_size": 16},
        "use_query_key_norm": True,
    },
    "GPTNeoX": {**PLAIN, "rotary_percentage": 0.5},
}
TABLES = {
    name: {**PLAIN, "max_sequence_length": 64, "dropout": 0.0}
    for name in ("GPT2", "Bert", "DistilBert", "OPT", "Roberta")
}
ALL = {**ROTARY, **TABLES}


def make_backbone(family, **kwargs):
    """Makes a backbone whose weights are large enough for attention."""
    import keras_hub

    cls = getattr(keras_hub.models, f"{family}Backbone")
    backbone = cls(**{**ALL[family], **kwargs})
    numbers = np.random.default_rng(3)
    for weight in backbone.trainable_weights:
        if len(weight.shape) > 1:
            weight.assign(numbers.normal(size=weight.shape) * 0.4)
    return backbone


def make_task(family, model):
    import keras_hub

    return model.make_task(getattr(keras_hub.models, f"{family}CausalLM"))


def make_inputs(family, tokens=12, real=None):
    """Makes random tokens, of which the last `tokens - real` are padding."""
    numbers = np.random.default_rng(0)
    ids = numbers.integers(1, VOCABULARY, (2, tokens)).astype("int32")
    mask = np.ones((2, tokens), "int32")
    if real is not None:
        mask[:, real:] = 0
    inputs = {"token_ids": ids, "padding_mask": mask}
    if family == "Bert":
        inputs["segment_ids"] = np.zeros_like(ids)
    return inputs


def compute(model, inputs, **kwargs):
    """Computes the hidden states of all tokens, a NumPy array `(B, T, M)`."""
    inputs = {
        name: keras.ops.convert_to_tensor(value)
        for name, value in inputs.items()
    }
    outputs = model(inputs, **kwargs)
    if isinstance(outputs, dict):
        outputs = outputs["sequence_output"]
    return np.asarray(
        keras.ops.convert_to_numpy(keras.ops.cast(outputs, "float32"))
    )


def place(inputs, positions, length):
    """Moves tokens to the indices `positions` of longer, padded sequences."""
    placed = {}
    for name, values in inputs.items():
        placed[name] = np.zeros((len(values), length), "int32")
        for row, indices in enumerate(positions):
            placed[name][row, indices] = values[row]
    return placed
