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
# # Language, in small: enwik8
#
# Three small decoders of bytes learn the same text with three encodings, and
# are tested on windows that are up to four times as long. The notebook takes
# less than ten minutes on two CPU cores.
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
import urllib.error
import urllib.request

from IPython.display import Image, display

from colab.commands import RUNS, SMOKE, read_results, run
from datasets.text.enwik8 import URL

# %% [markdown]
# ## The text
#
# enwik8, the first 100 MB of a dump of Wikipedia, is a download of 35 MB. If
# it cannot be had, the text is the source of Python's standard library, which
# every machine has: the results are then those of another text.

# %%
ARCHIVE = pathlib.Path("data/enwik8.zip")
DATASET = "enwik8"
if not ARCHIVE.exists():
    try:
        if SMOKE:
            raise urllib.error.URLError("not downloaded to check the notebook")
        ARCHIVE.parent.mkdir(exist_ok=True)
        part = ARCHIVE.with_suffix(".part")
        with (
            urllib.request.urlopen(URL, timeout=30) as answer,
            part.open("wb") as file,
        ):
            shutil.copyfileobj(answer, file)
        part.rename(ARCHIVE)
    except OSError as error:
        print(f"enwik8 cannot be downloaded: {error}")
        DATASET = "python_source"
RUN = f"{RUNS}/{DATASET}"
print("text:", DATASET)

# %% [markdown]
# ## Training
#
# The encodings differ in nothing but the positions: rotations (RoPE),
# rotations at random positions (RandomizedRoPE), and a penalty of the distance
# (ALiBi).

# %%
FLAGS = (
    "--train_length=128 --test_lengths=256,512"
    " --num_layers=3 --num_heads=4 --model_dim=96"
)
FLAGS += " --steps=3 --evaluation_examples=4" if SMOKE else " --steps=1000"
ENCODINGS = ("RoPE", "RandomizedRoPE", "ALiBi")
for encoding in ENCODINGS:
    run(
        f"trainers.enwik8 --dataset={DATASET} --encoding={encoding}"
        f" --workdir={RUN}/{encoding} {FLAGS}"
    )

# %%
run("trainers.compare " + " ".join(f"{RUN}/{name}" for name in ENCODINGS))

# %% [markdown]
# ## Result
#
# The first picture has the loss at each length of a window, the second one the
# loss at each position of the longest windows. `ALiBi` gains from what it
# reads in addition; `RoPE` fails where the trained length ends.

# %%
display(Image(f"{RUN}/comparison.png", width=600))
display(Image(f"{RUN}/comparison_positions.png", width=600))

# %%
bits = {}
for encoding in ENCODINGS:
    final = read_results(f"{RUN}/{encoding}")["final"]
    bits[encoding] = final["bits_per_character_by_length"]
    print(f"{encoding}, bits per byte:", bits[encoding])
if not SMOKE:
    assert bits["ALiBi"]["512"] < bits["ALiBi"]["128"] + 0.05
    assert bits["RandomizedRoPE"]["512"] < bits["RoPE"]["512"]

# %% [markdown]
# ## Continue a text

# %%
PROMPT = "import " if DATASET == "python_source" else "The "
run(f"trainers.generate {RUN}/ALiBi --prompt='{PROMPT}' --temperature=0.7")
