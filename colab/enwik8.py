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
import http.client
import shutil
import urllib.request

from IPython.display import Image, display

# SMOKE: only three training steps, to check that the notebook runs.
from colab.helpers.commands import RUNS, SMOKE, read_results, run
from trainers import import_tensorflow_quietly

# Without the notes of its start.
import_tensorflow_quietly()

from datasets.text.enwik8 import URL, ZIP_BYTES

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
    part = ARCHIVE.with_suffix(".part")
    try:
        if SMOKE:
            raise OSError("left out to check the notebook")
        ARCHIVE.parent.mkdir(exist_ok=True)
        with (
            urllib.request.urlopen(URL, timeout=30) as answer,
            part.open("wb") as file,
        ):
            shutil.copyfileobj(answer, file)
        size = part.stat().st_size
        if size != ZIP_BYTES:
            raise OSError(f"{size:,} bytes came instead of {ZIP_BYTES:,}")
        part.rename(ARCHIVE)
    except (OSError, http.client.HTTPException) as error:
        part.unlink(missing_ok=True)
        print(f"enwik8 was not downloaded: {error}")
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
