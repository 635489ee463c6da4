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
# # Images as sequences
#
# A small Transformer reads handwritten digits as sequences of gray values, row
# by row, with a delimiter after each row, as in the vision experiments on
# randomized positions. It is trained on images of 8 x 8 pixels and tested on
# images of up to 24 x 24, which are nine times as many tokens. The notebook
# takes less than ten minutes on two CPU cores.
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
# `run` runs a command as a terminal does. A command that was interrupted
# resumes when its cell runs again. With `KERAS_LENGEN_SMOKE=1`, models train
# for three steps only, to check that the notebook runs.

# %%
from IPython.display import Image

from colab.commands import RUNS, SMOKE, read_results, run

RUN = f"{RUNS}/digits"


# %% [markdown]
# ## Training
#
# The digits are those of scikit-learn; `--dataset=folder --data_dir=~/photos`
# takes your own images, in a folder for each class. One model has sinusoidal
# positions, the other one sinusoidal positions that are random.

# %%
FLAGS = "--dataset=digits"
if SMOKE:
    FLAGS += " --steps=3 --test_sizes=10x10 --evaluation_examples=8"
ENCODINGS = ("SinusoidalEncoding", "RandomizedSinusoidalEncoding")
for encoding in ENCODINGS:
    run(
        f"trainers.imagenet --encoding={encoding}"
        f" --workdir={RUN}/{encoding} {FLAGS}"
    )

# %%
run("trainers.compare " + " ".join(f"{RUN}/{name}" for name in ENCODINGS))

# %% [markdown]
# ## Result
#
# Random positions cost accuracy at the trained size and keep much of it on
# larger images. Ten classes: one answer of ten is right by chance.

# %%
Image(f"{RUN}/comparison.png", width=600)

# %%
accuracy = {}
for encoding in ENCODINGS:
    final = read_results(f"{RUN}/{encoding}")["final"]
    accuracy[encoding] = final["score"]
    print(encoding, final["accuracy_by_length"])
print("mean accuracy at unseen sizes:", accuracy)
if not SMOKE:
    plain, randomized = accuracy.values()
    assert randomized > plain + 0.1

# %% [markdown]
# ## What the model reads, and where it looks

# %%
run(f"trainers.analyze {RUN}/RandomizedSinusoidalEncoding")

# %%
Image(f"{RUN}/RandomizedSinusoidalEncoding/images.png", width=800)
