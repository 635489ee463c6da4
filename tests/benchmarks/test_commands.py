"""Every benchmark at the smallest size: it runs and reports."""

import json
import subprocess
import sys

import pytest

STEPS = ["--steps=2", "--root={path}/runs"]
TOY = [
    "--root={path}/runs",
    "--flags=steps=2,num_layers=1,evaluation_examples=2",
]
COMMANDS = {
    "train_step": ["--shapes=2x4", "--encodings=RoPE", "--rounds=1"],
    "overhead": [
        "--encodings=RandomizedRoPE",
        *("--num_layers=1", "--rounds=1", "--repeats=1"),
    ],
    "length_sweep": ["--lengths=1-3", "--examples=2", "--rounds=1"],
    "task_throughput": ["--lengths=2", "--rounds=1", "--seconds=0.01"],
    "sliding_window": [
        *("--lengths=8,16", "--window=4", "--num_heads=1", "--key_dim=2"),
        "--rounds=1",
    ],
    "long_attention": [
        *("--lengths=8,16", "--layers=SinusoidalEncoding", "--num_heads=1"),
        *("--key_dim=2", "--rounds=1"),
    ],
    "encoding_layers": ["--lengths=8,16", "--encodings=RoPE,ALiBi"],
    "evidence": [
        *STEPS,
        "--tasks=even_pairs",
        "--encodings=RoPE,RandomizedRoPE",
        "--seeds=1",
    ],
    "images": [*TOY, "--encodings=RoPE,axial RoPE"],
    "image_throughput": ["--images=40", "--rounds=1", "--batch_size=8"],
    "image_memory": [
        "--encodings=NoPE",
        "--flags=num_layers=1,model_dim=8,train_size=4x4,test_sizes=5x4,"
        "evaluation_examples=2",
    ],
    "language": [*TOY, "--encodings=RoPE", "--finetuned=ALiBi"],
    "text_throughput": [
        *("--rounds=1", "--steps=1", "--batches=2", "--megabytes=1"),
    ],
    "answers": [*TOY, "--tasks=parity"],
    "frontier": [
        "--root={path}/runs",
        "--only=coupled RoPE",
        "--flags=steps=2,warmup_steps=0,num_layers=1,evaluation_examples=2",
    ],
    "published_tasks": [
        *("--root={path}/runs", "--tasks=mqar", "--only=ASEntmax"),
        "--flags=steps=2,warmup_steps=0,num_layers=1,evaluation_examples=2,"
        "test_lengths=40",
    ],
    "kinds": [
        "--root={path}/runs",
        "--only=Abacus",
        "--flags=steps=2,warmup_steps=0,num_layers=1,evaluation_examples=2",
    ],
    "addition": [
        "--root={path}/runs",
        "--seeds=1",
        "--flags=steps=2,warmup_steps=0,evaluation_examples=2,"
        "generated_examples=1,test_lengths=12",
        *("--digits=13", "--answers=1"),
    ],
    "multiplication": [
        "--root={path}/runs",
        "--seeds=1",
        "--flags=steps=2,warmup_steps=0,evaluation_examples=2,test_lengths=12",
    ],
    "long_multiplication": [
        "--root={path}/runs",
        *("--seeds=1", "--factors=2", "--products=1"),
        "--flags=steps=2,warmup_steps=0,evaluation_examples=2,test_lengths=12",
    ],
    "efficiency": [*STEPS, "--long_steps=2", "--points=2"],
    "retrofit": [
        "--root={path}/runs",
        *("--steps=2", "--finetuning_steps=1", "--num_layers=1", "--windows=2"),
        *("--train_length=8", "--test_lengths=8,16", "--width=16"),
    ],
    "population": [
        *("--models=2", "--steps=2", "--rounds=1"),
        "--flags=num_layers=1,batch_size=8,train_length=1-3,buckets=1",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_command(tmp_path, name):
    if name in ("encoding_layers", "retrofit"):
        pytest.importorskip("keras_hub")
    report = tmp_path / "report.json"
    flags = [flag.format(path=tmp_path) for flag in COMMANDS[name]]
    subprocess.run(
        [
            *(sys.executable, "-m", f"benchmarks.{name}"),
            *(*flags, f"--output={report}"),
        ],
        check=True,
    )
    content = json.loads(report.read_text())
    assert content["command"].startswith(f"python -m benchmarks.{name} ")
    assert content.keys() > {"command"}
