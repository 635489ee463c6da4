"""Every benchmark: it is documented, and at the smallest size it reports."""

import json
import re
import sys

import pytest
from absl import flags

from tests.benchmarks.modules import imported
from tests.checkout import ROOT
from tests.shell import run_python

TOY = "steps=2,warmup_steps=0,num_layers=1,evaluation_examples=2"
SHORT = "steps=2,warmup_steps=0,evaluation_examples=2,test_lengths=12"
COMMANDS = {
    "attention_sensitivity": "--images={path}",
    "train_step": "--shapes=2x4 --encodings=RoPE --rounds=1",
    "overhead": "--encodings=RandomizedRoPE --num_layers=1 --rounds=1 "
    "--repeats=1",
    "length_sweep": "--lengths=1-3 --examples=2 --rounds=1",
    "task_throughput": "--lengths=2 --rounds=1 --seconds=0.01",
    "sliding_window": "--lengths=8,16 --window=4 --num_heads=1 --key_dim=2 "
    "--rounds=1",
    "long_attention": "--lengths=8,16 --layers=SinusoidalEncoding "
    "--num_heads=1 --key_dim=2 --rounds=1",
    "encoding_layers": "--lengths=8,16 --encodings=RoPE,ALiBi",
    "evidence": "--root={path}/runs --steps=2 --tasks=even_pairs --seeds=1 "
    "--encodings=RoPE,RandomizedRoPE",
    "images": f"--root={{path}}/runs --flags={TOY} --encodings=RoPE,axial_RoPE",
    "image_throughput": "--images=40 --rounds=1 --batch_size=8",
    "image_memory": "--encodings=NoPE --flags=num_layers=1,model_dim=8,"
    "train_size=4x4,test_sizes=5x4,evaluation_examples=2",
    "language": f"--root={{path}}/runs --flags={TOY} --encodings=RoPE "
    "--finetuned=ALiBi",
    "text_throughput": "--rounds=1 --steps=1 --batches=2 --megabytes=1",
    "answers": f"--root={{path}}/runs --flags={TOY} --tasks=parity",
    "frontier": f"--root={{path}}/runs --flags={TOY} --only=coupled_RoPE",
    "published_tasks": "--root={path}/runs --tasks=mqar --only=ASEntmax "
    f"--flags={TOY},test_lengths=40",
    "kinds": f"--root={{path}}/runs --flags={TOY} --only=Abacus",
    "addition": "--root={path}/runs --seeds=1 --digits=13 --answers=1 "
    f"--flags={SHORT},generated_examples=1",
    "multiplication": f"--root={{path}}/runs --seeds=1 --flags={SHORT}",
    "long_multiplication": "--root={path}/runs --seeds=1 --factors=2 "
    f"--products=1 --flags={SHORT}",
    "efficiency": "--root={path}/runs --steps=2 --long_steps=2 --points=2",
    "retrofit": "--root={path}/runs --steps=2 --finetuning_steps=1 "
    "--num_layers=1 --windows=2 --train_length=8 --test_lengths=8,16 "
    "--width=16",
    "population": "--models=2 --steps=2 --rounds=1 "
    "--flags=num_layers=1,batch_size=8,train_length=1-3,buckets=1",
}
"""Flags of the smallest run; `_` in a value of a list is a space."""

QUICK = ("attention_sensitivity", "image_throughput")
"""Benchmarks that take seconds, and run in this process."""


def test_every_command_is_documented():
    commands = {
        path.stem
        for path in (ROOT / "benchmarks").glob("*.py")
        if "__main__" in path.read_text()
    }
    folders = (ROOT / "benchmarks").glob("*/__main__.py")
    commands |= {path.parent.name for path in folders}
    # `published_code` starts it.
    commands.remove("published_example")
    text = (ROOT / "benchmarks" / "README.md").read_text()
    (table,) = re.findall(r"\| `python -m benchmarks.+\n(?:\|.*\n)+", text)
    documented = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert len(documented) == len(set(documented))
    assert COMMANDS.keys() <= set(documented) == commands


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=pytest.mark.product if name in QUICK else pytest.mark.slow,
        )
        for name in COMMANDS
    ],
)
def test_command(tmp_path, monkeypatch, name):
    if name in ("encoding_layers", "retrofit"):
        pytest.importorskip("keras_hub")
    report = tmp_path / "report.json"
    words = COMMANDS[name].format(path=tmp_path).split()
    if name in ("images", "frontier"):
        words = [word.replace("_RoPE", " RoPE") for word in words]
    argv = [name, *words, f"--output={report}"]
    monkeypatch.setattr(sys, "argv", argv)
    if name in QUICK:
        with imported(name) as benchmark:
            flags.FLAGS(argv)
            benchmark.main([])
    else:
        run_python("-m", f"benchmarks.{name}", *argv[1:])
    content = json.loads(report.read_text())
    assert content["command"].startswith(f"python -m benchmarks.{name} ")
    assert content.keys() > {"command"}
