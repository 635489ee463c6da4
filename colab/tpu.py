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
# contains this notebook, from a source archive in the working directory, from
# the place in the environment variable `KERAS_LENGEN_SOURCE`, or from PyPI.
# Packages that are there in a new enough version stay as they are.

# %%
import os
import pathlib
import subprocess
import sys
import tarfile


def find_source():
    """Returns the directory with the library and its trainers."""
    for checkout in ("..", "."):
        if pathlib.Path(checkout, "colab", "helpers").is_dir():
            return checkout
    archives = sorted(pathlib.Path().glob("keras_lengen-*.tar.gz"))
    source = archives[-1] if archives else os.environ.get("KERAS_LENGEN_SOURCE")
    if not source:
        # The package is the library alone, its source archive has the trainers.
        pip = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps"]
        package = ["--no-binary=keras_lengen", "keras_lengen"]
        subprocess.run([*pip, *package], check=True)
        (source,) = pathlib.Path().glob("keras_lengen-*.tar.gz")
    if os.path.isdir(source):
        return source
    if os.path.isfile(source):
        with tarfile.open(source) as archive:
            archive.extractall(filter="data")
            return archive.getnames()[0].partition("/")[0]
    clone = "keras_lengen-clone"
    if not os.path.isdir(clone):
        subprocess.run(["git", "clone", "--quiet", source, clone], check=True)
    return clone


try:
    os.chdir(find_source())
    sys.path.insert(0, os.getcwd())
    from colab.helpers.install import install_missing
except (ImportError, OSError, tarfile.TarError, subprocess.SubprocessError):
    raise RuntimeError(
        "keras_lengen is not here: upload dist/keras_lengen-*.tar.gz, which "
        "`python -m build` makes in a checkout, or set KERAS_LENGEN_SOURCE to "
        "a checkout, a source archive or the address of a git repository."
    ) from None
install_missing()

# %% [markdown]
# ## What this runtime has
#
# TensorFlow and JAX both train on TPUs: `--strategy=tpu` with TensorFlow, and
# every strategy with `KERAS_BACKEND=jax`. JAX supports TPUs of every
# generation, so that it is the backend here if JAX sees a TPU.

# %%
import importlib.util

from IPython.display import Image

# SMOKE: only three training steps, to check that the notebook runs.
from colab.helpers.commands import RUNS, SMOKE, read_results, run
from colab.helpers.install import find_local_tpus

PROGRAM = "import jax; print(jax.devices()[0].platform)"
seen = subprocess.run(
    [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True
).stdout.strip()
BACKEND, STRATEGY = "tensorflow", "auto"
if seen == "tpu":
    BACKEND = "jax"
elif find_local_tpus():
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
MODEL = "--task=missing_duplicate_string --encoding=RandomizedRelativeEncoding"
FLAGS = f"{MODEL} --strategy={STRATEGY}"
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
# `trainers.tpu_compile` compiles the training step of this task and encoding
# for a TPU, in bfloat16, and says whether it fits into the memory of a chip
# and how fast a step can be at best. Google's compiler runs on any machine;
# the extra `tpu-compile` installs it.

# %%
if HAS_TPU:
    print("The TPU of this runtime has run the program.")
elif SMOKE:
    print("left out to check the notebook")
elif all(map(importlib.util.find_spec, ("jax", "libtpu"))):
    run(
        f"trainers.tpu_compile --topology=v5e:2x2 --mode=train {MODEL}"
        f" --results={RUNS}/tpu.jsonl"
    )
else:
    print("Run `%pip install -e '.[tpu-compile]'`, then this cell again.")
