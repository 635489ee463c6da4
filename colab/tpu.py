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
# The same command trains on CPUs, GPUs and TPUs. This notebook trains a small
# Transformer on the TPU of its runtime. Without a TPU, it trains the same model
# on a GPU or a CPU for a fifth of the steps, and compiles the training step for
# a TPU if Google's compiler is installed. It takes less than ten minutes.
#
# In Colab, choose a TPU with *Runtime > Change runtime type*.
#
# In Colab, the first cell clones the repository, because the notebook runs its
# trainers, and installs the library from the clone, beside Colab's packages. In
# a checkout, where the library is installed already, the cell does nothing.

# %%
import os

if not os.path.isdir("../trainers"):  # not in a checkout, as in Colab
    address = "https://example.org/keras_lengen"
    # !test -d keras_lengen || git clone --quiet {address} keras_lengen
    # %pip install --quiet ./keras_lengen
    os.chdir("keras_lengen/colab")

# %% [markdown]
# ## Choose the backend
#
# If JAX finds a TPU, the backend is JAX, which supports every generation of
# TPUs. Otherwise the backend is TensorFlow.

# %%
import importlib.util
import subprocess
import sys

# SMOKE: only three training steps, to check that the notebook runs.
from helpers.commands import RUNS, SMOKE, read_results, run
from IPython.display import Image

# In a process of its own, because only one process can use a TPU.
PROGRAM = "import jax; print(jax.devices()[0].platform)"
platform = subprocess.run(
    [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True
).stdout.strip()
HAS_TPU = platform == "tpu"
os.environ["KERAS_BACKEND"] = "jax" if HAS_TPU else "tensorflow"
print(f"TPU: {HAS_TPU}; backend: {os.environ['KERAS_BACKEND']}")

# %% [markdown]
# ## Training
#
# On a TPU, matrices are multiplied in bfloat16 (`--precision=mixed_bfloat16`);
# weights, positions and losses are float32. All lengths of a bucket use one
# compiled program, which runs 50 steps before it returns to the host.

# %%
MODEL = "--task=missing_duplicate_string --encoding=RandomizedRelativeEncoding"
STEPS = 10_000 if HAS_TPU else 2000
FLAGS = f"{MODEL} --steps={3 if SMOKE else STEPS}"
if HAS_TPU:
    FLAGS += " --precision=mixed_bfloat16 --steps_per_loop=50"
if SMOKE:
    FLAGS += " --evaluation_examples=8"
run(f"trainers.algorithmic --workdir={RUNS}/tpu {FLAGS}")

# %%
Image(f"{RUNS}/tpu/length_generalization.png", width=600)

# %%
results = read_results(f"{RUNS}/tpu")
print("devices:", results["computed_by"]["devices"])
print(f"{results['train']['steps_per_second']:.1f} steps per second")
accuracy = results["final"]["accuracy_by_length"]
print(
    "accuracy by length:", {n: accuracy[n] for n in ("20", "40", "70", "100")}
)
if not SMOKE:
    assert results["final"]["score"] > 0.7

# %% [markdown]
# ## Compile for a TPU without a TPU
#
# `trainers.tpu_compile` compiles the training step of this task and encoding
# for a TPU, in mixed bfloat16. It prints whether the program fits into the
# memory of a chip, and a lower bound of the time per step. Google's compiler
# runs on any machine; the extra `tpu-compile` installs it.

# %%
if HAS_TPU:
    print("The program has run on the TPU of this runtime.")
elif SMOKE:
    print("skipped to check the notebook")
elif all(map(importlib.util.find_spec, ("jax", "libtpu"))):
    run(
        f"trainers.tpu_compile --topology=v5e:2x2 --mode=train {MODEL}"
        f" --results={RUNS}/tpu.jsonl"
    )
else:
    print("Run `%pip install -e '..[tpu-compile]'`, then this cell again.")
