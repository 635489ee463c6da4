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
# # Give a trained model other positions, and use it on longer text
#
# A small decoder of bytes has learned Python's source with rotary positions
# (RoPE), in windows of 64 bytes. It fails on longer windows. Training
# continues for a tenth of the steps with other positions, on windows that are
# as short as before; after that, the model reads eight times as much. The
# notebook takes less than ten minutes on two CPU cores.
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
# `run` runs a command as a terminal does. A command that was interrupted
# resumes when its cell runs again.

# %%
from IPython.display import Image

# SMOKE: only three training steps, to check that the notebook runs.
from colab.helpers.commands import RUNS, SMOKE, read_results, run

RUN = f"{RUNS}/other_positions"


# %% [markdown]
# ## The model that exists

# %%
FLAGS = (
    "--dataset=python_source --train_length=64 --test_lengths=128,256,512"
    " --num_layers=3 --num_heads=4 --model_dim=96"
)
FLAGS += " --steps=3 --evaluation_examples=4" if SMOKE else " --steps=1500"
run(f"trainers.enwik8 --encoding=RoPE --workdir={RUN}/RoPE {FLAGS}")

# %% [markdown]
# ## Continue with other positions
#
# `trainers.finetune` begins with the weights of the run. RoPE and the biases
# have no weights that the model would miss: all of its weights are kept. For
# comparison, one model goes on with RoPE.

# %%
STEPS = 3 if SMOKE else 150
CONTINUED = ("RoPE", "RandomizedRoPE", "ALiBi")
for encoding in CONTINUED:
    run(
        f"trainers.finetune {RUN}/RoPE --encoding={encoding} --steps={STEPS}"
        f" --max_position=1024 --workdir={RUN}/continued_{encoding}"
    )

# %%
NAMES = ["RoPE", *(f"continued_{encoding}" for encoding in CONTINUED)]
run("trainers.compare " + " ".join(f"{RUN}/{name}" for name in NAMES))

# %%
Image(f"{RUN}/comparison.png", width=600)

# %%
bits = {}
for name in NAMES:
    final = read_results(f"{RUN}/{name}")["final"]
    bits[name] = final["bits_per_character_by_length"]
    print(f"{name}, bits per byte of unseen files:", bits[name])
if not SMOKE:
    for better in ("continued_RandomizedRoPE", "continued_ALiBi"):
        assert bits[better]["512"] < bits["continued_RoPE"]["512"] - 0.5

# %% [markdown]
# ## Use it on longer text
#
# The exported file loads with Keras and `keras_lengen` alone. The model reads
# a prompt that is several times as long as its training windows, and goes on
# with bytes drawn from its predictions.

# %%
run(f"trainers.export {RUN}/continued_ALiBi --format=keras")

# %%
import inspect
import textwrap

from trainers import import_tensorflow_quietly

# Without the notes of its start.
import_tensorflow_quietly()

import keras
import numpy as np

import keras_lengen.models  # noqa: F401, registers the classes of the file

(path,) = pathlib.Path(RUN, "continued_ALiBi", "export").glob("*.keras")
model = keras.models.load_model(path)
prompt = inspect.getsource(textwrap)[:400].encode()
generated = model.generate(
    np.frombuffer(prompt, "uint8")[None], 120, temperature=0.7, seed=0
)
print(prompt.decode() + bytes(generated[0].astype("uint8")).decode("latin-1"))
