"""The table of compiled programs: its contents and its format."""

import json
import pathlib

from datasets.files import only_files
from keras_lengen.layers import ENCODINGS, SAMPLERS
from trainers.answers.options import DEMONSTRATIONS
from trainers.errors import ConfigError
from trainers.options.fields import options
from trainers.records.files import replacing
from trainers.records.markdown import table
from trainers.tpu.programs import MODES, list_trainers

TABLE = "benchmarks/results/tpu_compile.jsonl"
"""File of the table, which belongs to the repository."""

OWN = "runs/tpu_compile.jsonl"
"""File for all other results."""

UNUSABLE = ("too large", "failed")
"""Statuses of programs that cannot run; other programs are compiled, or their
configurations are refused by the library."""


def list_program_fields():
    """Returns the names of the configuration fields that change a program."""
    return {
        name
        for trainer in list_trainers().values()
        for name, known in options(trainer.config).items()
        if known.changes_program
    }


ARCHITECTURES = ("encoder", "decoder", "encoder_decoder")

FAMILIES = (
    "NoPE",
    "SinusoidalEncoding",
    "RandomizedRoPE",
    "RelativeEncoding",
    "ALiBi",
)
"""One encoding of each family."""

POD = {"topology": "v5e:16x16", "batch_size": 8192}
V4 = {"topology": "v4:2x2x1"}
OTHER_CHIPS = (
    V4,
    {"topology": "v5p:2x2x1"},
    {"topology": "v6e:2x2"},
)
"""Slices of chips other than v5e."""

BACKENDS = {"tensorflow": "TensorFlow", "jax": "JAX"}

DATA = ("dataset", "data_dir")
"""Flags of the data, on which numbers of classes and of examples depend."""

TEXT = {"trainer": "enwik8", "preset": "paper", "dataset": "python_source"}
"""The trainer of text; every long text has the same programs."""

IMAGES = {"trainer": "imagenet", "preset": "paper", "dataset": "noise"}
"""The trainer of images, with as many classes as ImageNet has."""

_FIRST_DATA = {
    flags["trainer"]: {"dataset": flags["dataset"]} for flags in (TEXT, IMAGES)
}
"""Data of the rows that were written before rows had them, by trainer."""

LONG_TEXT = {"train_length": "1024", "mode": "train"}
"""Flags that train on the longest texts of the evaluation."""

LARGE_IMAGES = {"train_size": "45x44", "mode": "train"}
"""Flags that train on the largest images of the evaluation."""

_LONG_PROGRAMS = (
    {**TEXT, "lengths": "all"},
    {**TEXT, **LONG_TEXT},
    {**IMAGES, "lengths": "all"},
)
"""Flags of the programs whose attention is compiled fused and not fused."""


def _list_long(encodings, slices, programs=_LONG_PROGRAMS):
    """Lists flags of these programs."""
    return tuple(
        {**flags, "encoding": encoding, **slice_}
        for slice_ in slices
        for flags in programs
        for encoding in encodings
    )


_LARGE_PROGRAMS = _list_long(
    ("NoPE", "RoPE", "ALiBi"), ({},), ({**IMAGES, **LARGE_IMAGES},)
)
"""Flags of training steps that are compiled fused and not fused for v5e."""

_FUSED = (
    *_list_long(("NoPE", "RoPE", "ALiBi"), ({}, *OTHER_CHIPS)),
    *_LARGE_PROGRAMS,
    *(
        {**TEXT, "encoding": encoding, **more}
        for encoding in (
            *("HardALiBi", "NAPE", "ClippedBias", "PowerKERPLE"),
            *("LogKERPLE", "BAM", "Sandwich", "T5Bias", "FIRE"),
            "RandomizedRoPE",
        )
        for more in ({}, LONG_TEXT)
    ),
)
"""Flags of programs of JAX with fused attention."""

_NOT_FUSED = (
    *_list_long(("NoPE", "RoPE", "ALiBi"), ({},)),
    # The compiler fails for an evaluation of images of 506 tokens on v6e.
    *_list_long(("NoPE",), OTHER_CHIPS, (*_LONG_PROGRAMS[:2], IMAGES)),
    *_LARGE_PROGRAMS,
    {**TEXT, "encoding": "T5Bias", **LONG_TEXT},
)
"""Flags of further programs of JAX to compare with these."""

CHUNKED = {"DAPE": {"chunk_size": 64}}
"""Flags of encodings that need too much memory for all queries at once."""

ANSWERS = {"trainer": "sequence_to_answer", "preset": "paper"}
"""The trainer of prompts and answers, on copies."""

ADDITION = {"trainer": "sequence_to_answer", "preset": "addition"}
"""The same trainer on sums, with one layer."""

METHODS = (
    {**ADDITION, **DEMONSTRATIONS["addition"]["coupled"]},
    {
        **ADDITION,
        "task": "reversed_addition",
        "encoding": "LearnedEncoding",
        "sampler": "AbacusPositions",
    },
    *(
        {**ADDITION, "encoding": "NoPE", "attention": attention}
        for attention in (
            *("StickBreakingAttention", "ForgettingAttention"),
            "PaTHAttention",
        )
    ),
    *(
        {**ADDITION, "encoding": "RoPE", "score_factor": factor}
        for factor in ("head", "log_length")
    ),
    {**ADDITION, "encoding": "NoPE", "loops": "length"},
)
"""Flags of samplers that read tokens, attentions, score factors and loops."""

PUBLISHED = (
    {"trainer": "algorithmic", "preset": "paper"},
    {**TEXT, "encoding": "RoPE"},
    {**IMAGES, "encoding": "RoPE"},
    {"trainer": "t5_decoder", "encoding": "T5Bias"},
    {"trainer": "gpt2", "encoding": "LearnedEncoding", "max_position": 1024},
)
"""Flags of a published configuration of each trainer."""

PUBLISHED_WITH_JAX = PUBLISHED[:3]
"""Those that the table also has with JAX."""

_MORE_PUBLISHED = (
    {"trainer": "algorithmic", "preset": "paper", "lengths": "all"},
    {
        "trainer": "algorithmic",
        "preset": "paper",
        "encoding": "RandomizedRelativeEncoding",
    },
    {"trainer": "algorithmic", "preset": "paper", "precision": "float32"},
    {**TEXT, "encoding": "RoPE", "lengths": "all"},
    {**IMAGES, "encoding": "RoPE", "lengths": "all"},
    {**ANSWERS, "encoding": "T5Bias"},
    {**TEXT, "encoding": "RoPE", **LONG_TEXT},
    {**IMAGES, "encoding": "RoPE", **LARGE_IMAGES},
    *({**TEXT, "encoding": encoding} for encoding in ENCODINGS),
    *(
        {
            **IMAGES,
            "encoding": encoding,
            "topology": "v5e:1x1",
            **CHUNKED.get(encoding, {}),
        }
        for encoding in ENCODINGS
    ),
)
"""Flags of further lengths, encodings and precisions."""


def list_flags():
    """Yields a dict of flags for each command that compiles the table."""
    for flags in _list_tensorflow_flags():
        yield {"backend": "tensorflow", **flags}
    for flags in _list_jax_flags():
        yield {"backend": "jax", **flags}


def _list_jax_flags():
    for flags in _list_unfused_flags():
        yield {**flags, "fused": "never"}
    for flags in _FUSED:
        yield {**flags, "fused": "always"}


def _list_unfused_flags():
    yield from (
        {"trainer": "encoder", "encoding": encoding} for encoding in ENCODINGS
    )
    yield from (
        {"trainer": "encoder", "encoding": encoding, **slice_}
        for slice_ in OTHER_CHIPS
        for encoding in FAMILIES
    )
    yield from PUBLISHED_WITH_JAX
    yield from ({**TEXT, "encoding": encoding} for encoding in ENCODINGS)
    yield from _NOT_FUSED
    yield from METHODS


def _list_tensorflow_flags():
    yield from PUBLISHED
    yield from _MORE_PUBLISHED
    yield from (
        {"trainer": "encoder", "encoding": encoding, **slice_}
        for slice_ in (POD, V4)
        for encoding in FAMILIES
    )
    yield from (
        {"trainer": trainer, "encoding": encoding}
        for encoding in ENCODINGS
        for trainer in ARCHITECTURES
    )
    yield from (
        {"trainer": "encoder", "encoding": "RoPE", "sampler": sampler}
        for sampler in SAMPLERS
    )
    yield {
        "trainer": "encoder",
        "encoding": "AxialEncoding(row=RoPE, column=RoPE)",
        "sampler": "GridPositions(width=8)",
    }
    yield {
        "trainer": "encoder",
        "encoding": "NoPE",
        "attention": "GeometricAttention",
    }
    yield from METHODS


class Results:
    """Results of compiled programs in a file of JSON lines.

    Each row is a program. If a program has several rows, the newest counts.

    Args:
        path: str or path. The file, which is created when the first row is
            added.

    Raises:
        ConfigError: If the file cannot be read.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self._rows = {}
        try:
            with open(self.path, opener=only_files) as file:
                text = file.read()
        except FileNotFoundError:
            text = ""
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            message = f"cannot read --results={path}: {reason}."
            raise ConfigError(message) from None
        # The last line is incomplete if a process was killed while writing.
        self._ends = not text or text.endswith("\n")
        for number, line in enumerate(text.splitlines(), 1):
            try:
                row = json.loads(line)
            except ValueError:
                continue
            try:
                self._keep(row)
                _get_order(row)
                _make_cells(row)
            except (KeyError, TypeError, ValueError, AttributeError):
                raise ConfigError(
                    f"--results={path} is damaged or of another version in "
                    f"line {number}: remove that line, or choose another file."
                ) from None

    def _keep(self, row):
        self._rows[_make_key(row)] = row

    def __contains__(self, key):
        row = self._rows.get(_make_key(key))
        if row is None:
            return False
        # Older versions also kept refusals for missing data.
        may_be_of_data = DATA[1] in key and DATA[1] not in row
        return row["status"] != "refused" or not may_be_of_data

    def __getitem__(self, key):
        return self._rows[_make_key(key)]

    def __iter__(self):
        return iter(self._rows.values())

    def add(self, row):
        """Appends a row to the file.

        Raises:
            ConfigError: If the file cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "a", opener=only_files) as file:
                file.write("" if self._ends else "\n")
                file.write(json.dumps(row) + "\n")
        except OSError as error:
            raise ConfigError(
                f"cannot write to --results={self.path}: {error.strerror}."
            ) from None
        self._ends = True
        self._keep(row)

    def write_report(self):
        """Writes all rows as tables to a Markdown file beside the file.

        Raises:
            TrainingError: If it cannot be written.
        """
        path = self.path.with_suffix(".md")
        with replacing(path) as file:
            file.write(make_report(list(self)).encode())
        print(f"report: {path}")


def _make_key(row):
    """Returns a string that identifies the program of a row."""
    names = (
        *("backend", "topology", "trainer", "mode", "tokens", "preset"),
        *list_program_fields(),
        *DATA,
    )
    # A flag that did not exist when a row was written had its default.
    config = list_trainers()[row["trainer"]].config
    defaults = {name: known.default for name, known in options(config).items()}
    defaults |= _FIRST_DATA.get(row["trainer"], {})
    if row["backend"] == "jax":
        # Attention was not fused on several chips.
        defaults["fused"] = "never"
    key = {name: row.get(name, defaults.get(name)) for name in names}
    return json.dumps(key, sort_keys=True)


def describe(row):
    """Describes a program and the results of compiling it in one line."""
    name = (
        f"{row['trainer']}, {_describe_encoding(row)}, {row['mode']}, "
        f"{row['tokens']} tokens, {row['precision']}, {row['topology']}, "
        f"{BACKENDS[row['backend']]}"
    )
    if row["status"] != "compiled":
        return f"{name}: {row['status']}: {row['reason']}"
    return (
        f"{name}: compiled in {row['compile_seconds']:.0f} s; each chip uses "
        f"{row['memory'] / 1e9:.2f} of {row['memory_limit'] / 1e9:.0f} GB for "
        f"{row['examples_per_chip']} examples, "
        f"computes {_format_number(row['flops'])}flop, "
        f"reads and writes {_format_number(row['bytes'])}B, "
        f"sums {_describe_exchange(row)} with other chips, "
        f"and takes at least {1e3 * row['step_seconds']:.2f} ms; the run needs "
        f"{sum(row['programs'].values())} programs"
    )


def _describe_encoding(row):
    parts = [row["encoding"], row["sampler"]]
    if row["attention"] != "MultiHeadAttention":
        parts.append(row["attention"])
    # Rows that were written before these flags existed had their defaults.
    if row.get("score_factor", "none") != "none":
        parts.append(f"score_factor={row['score_factor']}")
    if row.get("loops", "1") != "1":
        parts.append(f"loops={row['loops']}")
    if row["backend"] == "jax" and row.get("fused", "never") != "never":
        parts.append("fused" if row["fused"] == "always" else "perhaps fused")
    return ", ".join(filter(None, parts))


def _describe_exchange(row):
    text = f"{_format_number(row['all_reduce_bytes'])}B"
    if row["gathered_bytes"]:
        text += f" and gathers {_format_number(row['gathered_bytes'])}B"
    return text


def _format_number(value):
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.0f} "


_HEAD = (
    "program",
    "tokens",
    "examples per chip",
    "memory per chip",
    "of the limit",
    "flop",
    "bytes",
    "summed over chips",
    "least time of a step",
    "compile time",
)


def make_report(found):
    """Returns a Markdown page with tables of all rows."""
    parts = [_INTRODUCTION.format(**_count_totals(found))]
    parts.append("## Programs of a run\n")
    parts.append(table(("trainer", *MODES), _count_programs(found)) + "\n")
    groups = {}
    for row in sorted(found, key=_get_order):
        of_group = (row["backend"], row["topology"], row["mode"])
        groups.setdefault(of_group, []).append(row)
    for (backend, topology, mode), of_group in groups.items():
        parts.append(f"## {BACKENDS[backend]}, {topology}, {mode}\n")
        parts.append(table(_HEAD, map(_make_cells, of_group)) + "\n")
    return "\n".join(parts)


_INTRODUCTION = """\
# Programs compiled for TPUs

<!-- Written by `python -m trainers.tpu_compile`. -->

These are the training steps, and the evaluations of a batch, of TensorFlow and
of JAX. {compiled} programs compile and fit into the memory of a chip,
{too_large} are too large for it, and {failed} do not compile or do not sum all
gradients. The library refuses {refused} programs and gives a reason. The
largest program uses {largest} of a chip's memory. All numbers are those of one
chip, which runs its share of the batch.

- *Memory*: arguments, results, temporary values and the program itself.
- *Bytes*: read and written by operations, in any memory of the chip.
- *Summed over chips*: bytes of the all-reduces, which are the gradients, the
  loss and the number of outputs. TensorFlow's steps sum float32 gradients. In
  JAX's steps with mixed_bfloat16, XLA sums the gradients of most weights in
  bfloat16, and of a table of positions only the rows that are used. JAX's
  evaluations also sum the results; with TensorFlow, another program does.
- *Fused*: attention of JAX in kernels, which keep scores and biases in the fast
  memory (`docs/guides/fused_attention.md`). The compiler counts their products
  and bytes as the kernels estimate them.
- *Least time of a step*: the greater of flop divided by the chip's peak and
  bytes divided by its bandwidth, plus the time of the all-reduces as estimated
  in `docs/guides/scaling.md`. No TPU has run these programs. If a program
  copies an array in a loop, the compiler counts the entire array for each
  iteration, so *bytes* and *least time* are far too large. This is the case for
  `RandomizedRelativeEncoding`, which looks up sampled distances, at 1,024
  tokens (`docs/guides/scaling.md`).

The file `tpu_compile.jsonl` has the versions of the packages and everything
that determines each program.
"""


def _count_totals(found):
    compiled = [row for row in found if row["status"] == "compiled"]
    shares = [row["memory"] / row["memory_limit"] for row in compiled]
    return {
        **{
            status.replace(" ", "_"): sum(
                row["status"] == status for row in found
            )
            for status in ("compiled", *UNUSABLE, "refused")
        },
        "largest": f"{max(shares, default=0):.0%}",
    }


def _get_order(row):
    names = list(ENCODINGS)
    return (
        list(BACKENDS).index(row["backend"]),
        list(list_trainers()).index(row["trainer"]),
        names.index(row["encoding"]) if row["encoding"] in names else -1,
        row["sampler"],
        row["precision"],
        row["tokens"],
    )


def _count_programs(found):
    """Counts the programs that a run of each published trainer needs."""
    runs = {
        row["trainer"]: row["programs"]
        for row in found
        if row["trainer"] not in ARCHITECTURES
    }
    return [
        (f"`{trainer}`", *(str(runs[trainer][mode]) for mode in MODES))
        for trainer in list_trainers()
        if trainer in runs
    ]


def _make_cells(row):
    name = f"`{row['trainer']}`, `{_describe_encoding(row)}`"
    if row["precision"] != "mixed_bfloat16":
        name += f", {row['precision']}"
    if row["gradient_accumulation_steps"] > 1:
        name += f", in {row['gradient_accumulation_steps']} parts"
    if row["status"] != "compiled":
        reason = f"{row['status']}: {row['reason']}"
        return (name, f"{row['tokens']:,}", reason, *[""] * (len(_HEAD) - 3))
    return (
        name,
        f"{row['tokens']:,}",
        f"{row['examples_per_chip']}",
        f"{row['memory'] / 1e9:.3f} GB",
        f"{row['memory'] / row['memory_limit']:.1%}",
        _format_number(row["flops"]),
        f"{_format_number(row['bytes'])}B",
        _describe_exchange(row),
        f"{1e3 * row['step_seconds']:.2f} ms",
        f"{row['compile_seconds']:.0f} s",
    )
