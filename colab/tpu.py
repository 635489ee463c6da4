# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Train on a TPU
#
# The trainers run the same command on CPUs, GPUs and TPUs. This notebook
# trains a small Transformer on the TPU of its runtime. Without a TPU it trains
# the same model on the GPU or the CPU, a fifth of the steps, and compiles its
# program for a TPU where Google's compiler is installed. It takes less than
# ten minutes.
#
# In Colab, *Runtime > Change runtime type* chooses a TPU.
#
# The first cell installs the library and its trainers: from the checkout that
# contains this notebook if there is one, else from its release. TensorFlow is
# installed only if the machine has none, with the extra for its hardware.

# %%
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

pip = [sys.executable, "-m", "pip", "--quiet"]
installed = importlib.util.find_spec("keras_lengen") is not None
if pathlib.Path("../trainers").is_dir():
    os.chdir("..")
elif not pathlib.Path("trainers").is_dir():
    # The package is the library alone, the source archive has the trainers.
    source = ("--no-deps", "--no-binary=keras_lengen", "keras_lengen")
    subprocess.run([*pip, "download", *source], check=True)
    (archive,) = pathlib.Path().glob("keras_lengen-*.tar.gz")
    shutil.unpack_archive(archive)
    os.chdir(archive.name.removesuffix(".tar.gz"))
if not installed:
    extras = ["images", "plots"]
    if importlib.util.find_spec("tensorflow") is None:
        if pathlib.Path("/dev/accel0").exists():
            extras.append("tpu")
        elif shutil.which("nvidia-smi"):
            extras.append("gpu")
        else:
            extras.append("tensorflow")
    subprocess.run(
        [*pip, "install", "--editable", f".[{','.join(extras)}]"], check=True
    )

# %% [markdown]
# ## What this runtime has
#
# TensorFlow and JAX both train on TPUs: `--strategy=tpu` with TensorFlow, and
# every strategy with `KERAS_BACKEND=jax`. JAX supports TPUs of every
# generation, so that it is the backend here if JAX sees a TPU. With
# `KERAS_LENGEN_SMOKE=1`, the model trains for three steps only, to check that
# the notebook runs.

# %%
from IPython.display import Image

from colab.commands import RUNS, SMOKE, read_results, run

PROGRAM = "import jax; print(jax.devices()[0].platform)"
seen = subprocess.run(
    [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True
).stdout.strip()
BACKEND, STRATEGY = "tensorflow", "auto"
if seen == "tpu":
    BACKEND = "jax"
elif pathlib.Path("/dev/accel0").exists():
    STRATEGY = "tpu"
HAS_TPU = (BACKEND, STRATEGY) != ("tensorflow", "auto")
os.environ["KERAS_BACKEND"] = BACKEND
print(f"TPU: {HAS_TPU}; backend {BACKEND}, --strategy={STRATEGY}")

# %% [markdown]
# ## Training
#
# On a TPU, matrices are multiplied in bfloat16 (`--precision=mixed_bfloat16`);
# weights, positions and losses remain float32. One program serves all lengths
# of a bucket, and a loop of 50 steps runs without the host.

# %%
FLAGS = (
    "--task=missing_duplicate_string --encoding=RandomizedRelativeEncoding"
    f" --strategy={STRATEGY}"
)
if HAS_TPU:
    FLAGS += " --precision=mixed_bfloat16 --steps_per_loop=50"
STEPS = 10_000 if HAS_TPU else 2000
FLAGS += f" --steps={3 if SMOKE else STEPS}"
if SMOKE:
    FLAGS += " --evaluation_examples=8"
run(f"trainers.algorithmic --workdir={RUNS}/tpu {FLAGS}")

# %%
Image(f"{RUNS}/tpu/length_generalization.png", width=600)

# %%
results = read_results(f"{RUNS}/tpu")
print("devices:", results["computed_by"]["devices"])
print(f"{results['train']['steps_per_second']:.1f} steps a second")
accuracy = results["final"]["accuracy_by_length"]
print(
    "accuracy by length:", {n: accuracy[n] for n in ("20", "40", "70", "100")}
)
if not SMOKE:
    assert results["final"]["score"] > 0.7

# %% [markdown]
# ## Without a TPU: compile for one
#
# `trainers.tpu_compile` compiles the same training step with Google's
# compiler, which runs on any machine (package `libtpu`), and says whether it
# fits into the memory of a chip and how fast a step can be at best.

# %%
if SMOKE:
    print("left out to check the notebook")
elif importlib.util.find_spec("libtpu") and not HAS_TPU:
    run(
        "trainers.tpu_compile --topology=v5e:2x2 --mode=train"
        f" --encoding=RandomizedRelativeEncoding --results={RUNS}/tpu.jsonl"
    )
else:
    print("`pip install libtpu` first, on a machine without a TPU.")
