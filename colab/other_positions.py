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
# # Change the positional encoding of a trained model
#
# A small byte-level decoder with rotary positions (RoPE) is trained on Python
# source code, in windows of 64 bytes. It fails on longer windows. Training then
# continues with other encodings for a tenth of the steps, on windows of the
# same length. After that, the model reads windows eight times as long. The
# notebook takes less than ten minutes on two CPU cores.
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
# `run` runs a command in the checkout, as a terminal does. To resume an
# interrupted command, run its cell again.

# %%
# SMOKE: only three training steps, to check that the notebook runs.
from helpers.commands import RUNS, SMOKE, read_results, run
from IPython.display import Image

RUN = f"{RUNS}/other_positions"


# %% [markdown]
# ## The original model

# %%
FLAGS = (
    "--dataset=python_source --train_length=64 --test_lengths=128,256,512"
    " --num_layers=3 --num_heads=4 --model_dim=96"
)
FLAGS += " --steps=3 --evaluation_examples=4" if SMOKE else " --steps=1500"
run(f"trainers.enwik8 --encoding=RoPE --workdir={RUN}/RoPE {FLAGS}")

# %% [markdown]
# ## Continue with another encoding
#
# `trainers.finetune` starts from the weights of a run. RoPE, RandomizedRoPE and
# ALiBi have no weights of their own, so all weights of the model are reused. As
# a baseline, one model continues with RoPE.

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
# ## Generate longer text
#
# Loading the exported file needs only Keras and `keras_lengen`. The model reads
# a prompt several times as long as its training windows, and continues it with
# sampled bytes.

# %%
run(f"trainers.export {RUN}/continued_ALiBi --format=keras")

# %%
import inspect
import pathlib
import textwrap

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
