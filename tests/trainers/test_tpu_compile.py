"""Programs for TPUs: what is asked for, lowered, compiled, and recorded."""

import json
import os
import re
import venv
from unittest import mock

import pytest

from keras_lengen.layers import ENCODINGS, SAMPLERS
from tests.checkout import ROOT
from tests.shell import run
from trainers import tpu_compile
from trainers.errors import ConfigError, DataError, TrainingError
from trainers.options.fields import resolve
from trainers.tpu import compilation, compiler, table
from trainers.tpu.compiler import Topology, estimate_step_seconds
from trainers.tpu.options import PRESETS, TpuCompileConfig
from trainers.tpu.programs import list_trainers
from trainers.tpu.requests import list_programs
from trainers.tpu.table import Results
from trainers.tpu.tensorflow_programs import lower

TOY = {
    "trainer": "encoder",
    "encoding": "RandomizedRoPE",
    "train_length": "6",
    "test_lengths": "6",
    "batch_size": 8,
}
RECORDS = {"trainer": "imagenet", "encoding": "RoPE", "dataset": "tfrecords"}
COMMITTED = ROOT / "benchmarks" / "results" / "tpu_compile.jsonl"
ROW = next(
    row
    for row in map(json.loads, COMMITTED.read_text().splitlines())
    if row["trainer"] == "encoder"
)


def config_of(**flags):
    return resolve(TpuCompileConfig, PRESETS, flags)


def programs(**flags):
    return list_programs(config_of(**flags))


def row_of(program, **changes):
    """A committed row as that of another program, with the sums of it."""
    sums = {"trained_parameters": 100, "all_reduce_bytes": 408}
    return {**ROW, **program.key, **sums, **changes}


@pytest.mark.product
@pytest.mark.parametrize(
    ("mode", "share"), [("train", 8 // 4), ("evaluate", 500 // 4)]
)
def test_a_program_has_its_share_of_the_batch_and_sums_over_all(mode, share):
    (program,) = programs(mode=mode, **TOY)
    text, examples, trained = lower(
        program.experiment, program.config, mode, 6, Topology("v5e:2x2")
    )
    (main,) = [line for line in text.splitlines() if "@main(" in line]
    # Nobody sees the batches of the others.
    batches = re.findall(r"%arg\d+: tensor<(\d+)x6xi32>", main)
    assert {*map(int, batches)} == {examples} == {share}
    # Replicas draw numbers of their own.
    assert "stablehlo.replica_id" in text
    sums = text.count('"stablehlo.all_reduce"(')
    over_all = (
        r"all_reduce\"\(%\S+\) <{replica_groups = dense<\[\[0, 1, 2, 3\]\]>"
    )
    assert len(re.findall(over_all, text)) == sums
    # Gradients of the embeddings, 12 in a block, 2 of the head; the loss and
    # the number of outputs.
    assert sums >= 17 if mode == "train" else not sums
    assert trained > 50_000
    assert "mhlo.copy" not in compiler.make_readable(text)


def test_a_step_takes_what_takes_longest():
    for topology, flops, moved, seconds in (
        ("v5e:1x1", 197e12, 0, 1),
        ("v5e:1x1", 197e12, 2 * 819e9, 2),
        ("v5e:2x2", 0, 0, 1.5 * (0.015 + 4e-6)),
    ):
        row = {"flops": flops, "bytes": moved}
        row |= {"all_reduce_bytes": 1e9, "gathered_bytes": 1e9}
        found = estimate_step_seconds(row, Topology(topology))
        assert found == pytest.approx(seconds)


def test_programs_that_cannot_run():
    program, _ = programs(**TOY)
    for changes, status in (
        ({}, "compiled"),
        ({"memory": 17e9}, "too large"),
        ({"all_reduce_bytes": 396}, "failed"),
        ({"all_reduce_bytes": 200, "backend": "jax"}, "compiled"),
        ({"all_reduce_bytes": 0, "mode": "evaluate"}, "compiled"),
        ({"all_reduce_bytes": 0, "topology": "v5e:1x1"}, "compiled"),
    ):
        found = compilation.judge(row_of(program, **changes))
        assert found["status"] == status
        assert ("reason" in found) == (status != "compiled")


def test_programs_that_the_library_or_the_compiler_refuses(monkeypatch):
    program, _ = programs(**{**TOY, "encoding": "XPos"})
    row = compilation.compile_one(program)
    assert row["status"] == "refused"
    assert "is for causal attention" in row["reason"]
    flags = {"trainer": "enwik8", "encoding": "RoPE", "mode": "train"}
    (program,) = programs(**flags, data_dir="/none")
    with pytest.raises(DataError, match=r"enwik8 is not in .*: download"):
        compilation.compile_one(program)

    lowered = "", 2, 100
    monkeypatch.setattr(
        "trainers.tpu.tensorflow_programs.lower", lambda *_: lowered
    )
    program, _ = programs(**TOY)
    for memory, status in (("on HBM", "too large"), ("in vmem", "failed")):
        error = RuntimeError(f"RESOURCE_EXHAUSTED: Out of memory {memory}.\nA")
        refuse = mock.Mock(side_effect=error)
        monkeypatch.setattr(compilation, "compile_program", refuse)
        row = compilation.compile_one(program)
        assert row["status"] == status
        assert row["reason"].endswith(f"Out of memory {memory}.")


def test_keys_differ_where_programs_do():
    for flags, change in (
        (TOY, {"topology": "v4:2x2x1"}),
        (TOY, {"backend": "jax"}),
        (TOY, {"trainer": "decoder"}),
        (TOY, {"gradient_accumulation_steps": 2}),
        (RECORDS, {"data_dir": "elsewhere"}),
    ):
        first, _ = programs(**flags)
        other, _ = programs(**{**flags, **change})
        keys = {table._make_key(row_of(each)) for each in (first, other)}
        assert len(keys) == 2


@pytest.fixture
def asked(monkeypatch):
    """Programs that a compiler which does nothing was asked for."""
    asked = []

    def compile_all(missing, results, jobs):
        for program in missing:
            asked.append(program)
            results.add(row_of(program, compile_seconds=float(len(asked))))

    monkeypatch.setattr(Topology, "devices", lambda self: ())
    monkeypatch.setattr(tpu_compile, "compile_all", compile_all)
    return asked


def test_what_is_in_the_file_is_not_compiled_again(tmp_path, asked):
    path = tmp_path / "r.jsonl"
    flags = {"results": str(path), **TOY}
    tpu_compile.main(config_of(mode="train", **flags))
    tpu_compile.main(config_of(**flags))
    assert [program.mode for program in asked] == ["train", "evaluate"]
    # A line that a kill cut short.
    path.write_text(path.read_text()[:-20])
    tpu_compile.main(config_of(**flags))
    assert len(asked) == 3
    tpu_compile.main(config_of(force=True, **flags))
    # The newest row of a program counts.
    rows = list(Results(path))
    assert [row["compile_seconds"] for row in rows] == [4.0, 5.0]
    page = path.with_suffix(".md").read_text()
    assert page.count("| `encoder`, `RandomizedRoPE` |") == 2


def test_a_program_that_cannot_run_ends_with_an_error(tmp_path, asked):
    flags = {"results": str(tmp_path / "r.jsonl"), **TOY}
    program, _ = programs(**flags)
    row = row_of(program, status="too large", reason="it needs 17 GB")
    (tmp_path / "r.jsonl").write_text(json.dumps(row) + "\n")
    expected = "1 of 2 programs cannot run, .*the first: it needs 17 GB"
    with pytest.raises(TrainingError, match=expected):
        tpu_compile.main(config_of(**flags))
    page = (tmp_path / "r.md").read_text()
    assert "1 are too large for it, and 0 do not" in " ".join(page.split())


def test_what_are_no_results(tmp_path, asked):
    path = tmp_path / "r.jsonl"
    for content, message in (
        (b'\n{"trainer": "encoder"}', "of another version in line 2"),
        (b"\xff\n", "results=.*jsonl: it is not text"),
    ):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=message):
            Results(path)
    flags = {**TOY, "results": "/dev/null/r.jsonl"}
    with pytest.raises(ConfigError, match=r"cannot .* --results=/dev/null"):
        tpu_compile.main(config_of(**flags))


def test_flags_that_cannot_be():
    for flags, message in (
        ({"topology": "v9:2x2"}, "chips are v4 "),
        ({"topology": "v5e:2x2x1"}, "chips are v4 "),
        ({"topology": "v5e:0x2"}, "chips are v4 "),
        ({"topology": "v6e:16x32"}, "chips are v4 "),
        ({"results": "r.md"}, "is the name of the report"),
        ({"precision": "mixed_float16"}, "TPUs compute in bfloat16"),
        ({"trainer": "enwik8", "task": "even_pairs"}, "--task is not a flag"),
    ):
        with pytest.raises(ConfigError, match=message):
            programs(**flags)


def test_without_a_compiler(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs .*libtpu"):
        Topology("v5e:2x2").devices()


def test_the_table_has_every_encoding_and_sampler():
    listed = list(table.list_flags())
    for backend in ("jax", "tensorflow"):
        rows = [row for row in listed if row["backend"] == backend]
        assert {*ENCODINGS} <= {row.get("encoding") for row in rows}
    assert {*SAMPLERS} <= {row.get("sampler") for row in rows}
    # WikiText-103 is not on every machine; `gpt2` has the same shapes. Examples
    # are a user's, and their models those of the other trainers.
    trainers = {*list_trainers()} - {"wikitext103", "examples"}
    assert trainers == {row["trainer"] for row in rows}


def test_committed_rows_compile_and_are_those_of_the_page():
    rows = list(Results(COMMITTED))
    assert {row["status"] for row in rows} == {"compiled", "refused"}
    refused = [row["reason"] for row in rows if row["status"] == "refused"]
    assert all("is for causal attention" in reason for reason in refused)
    page = COMMITTED.with_suffix(".md").read_text()
    assert page == table.make_report(rows)


@pytest.mark.tpu_compile
@pytest.mark.parametrize(
    ("backend", "topology"), [("tensorflow", "v4:2x2x1"), ("jax", "v6e:2x4")]
)
def test_compiles_for_a_real_slice(tmp_path, backend, topology):
    pytest.importorskip("libtpu")
    flags = {"results": str(tmp_path / "r.jsonl"), **TOY}
    tpu_compile.main(config_of(backend=backend, topology=topology, **flags))
    train, evaluate = Results(flags["results"])
    assert train["status"] == evaluate["status"] == "compiled"
    assert train["backend"] == evaluate["backend"] == backend
    assert 0 < train["memory"] < train["memory_limit"]
    assert train["flops"] > evaluate["flops"] / 100 > 0
    gradients = 4 * train["trained_parameters"]
    if backend == "tensorflow":
        # Gradients, the loss and the number of outputs, in one message. The
        # number is a constant here, which the compiler may multiply instead.
        assert train["all_reduces"] == 1
        assert train["all_reduce_bytes"] - gradients in (4, 8)
        assert evaluate["all_reduce_bytes"] == 0
    else:
        assert gradients / 2 < train["all_reduce_bytes"] < gradients


@pytest.mark.tpu_compile
def test_tensorflow_itself_lowers_steps_for_tpus(tmp_path):
    """In an environment of its own, as its package excludes the ordinary one.

    KERAS_LENGEN_TPU_PYTHON names the Python of one that has the extra `tpu`;
    without it, one is made, of 2.6 GB.
    """
    python = os.environ.get("KERAS_LENGEN_TPU_PYTHON")
    if not python:
        venv.create(tmp_path / "venv", with_pip=True)
        python = tmp_path / "venv" / "bin" / "python"
        run(python, "-m", "pip", "install", "-q", f"{ROOT}[tpu]")
    # Without those of the other compiler, and not to ask where there is no TPU.
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TPU_")
    }
    variables["TPU_SKIP_MDS_QUERY"] = "1"
    done = run(python, "-m", "tests.trainers.tpu_lowering", env=variables)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert len(rows) == 4
    for _, mode, sums in rows:
        assert (int(sums) > 0) == (mode == "train")
