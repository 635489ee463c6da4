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
# # Language modeling on enwik8
#
# Three small byte-level decoders with different positional encodings are
# trained on the same text, and tested on windows up to four times as long as
# the training windows. The notebook takes less than ten minutes on two CPU
# cores.
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
import http.client
import shutil
import urllib.request

# SMOKE: only three training steps, to check that the notebook runs.
from helpers.commands import ROOT, RUNS, SMOKE, read_results, run
from IPython.display import Image, display

URL = "http://mattmahoney.net/dc/enwik8.zip"
ZIP_BYTES = 36_445_475

# %% [markdown]
# ## The text
#
# enwik8 consists of the first 100 MB of a dump of Wikipedia, a download of
# 36 MB. If the download fails, the notebook uses the source code of Python's
# standard library instead, and its numbers differ from those of enwik8.

# %%
ARCHIVE = ROOT / "data" / "enwik8.zip"
DATASET = "enwik8"
if not ARCHIVE.exists():
    part = ARCHIVE.with_suffix(".part")
    try:
        if SMOKE:
            raise OSError("skipped to check the notebook")
        ARCHIVE.parent.mkdir(exist_ok=True)
        with (
            urllib.request.urlopen(URL, timeout=30) as answer,
            part.open("wb") as file,
        ):
            shutil.copyfileobj(answer, file)
        size = part.stat().st_size
        if size != ZIP_BYTES:
            raise OSError(f"got {size:,} bytes instead of {ZIP_BYTES:,}")
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
# The models are equal except for the encoding: rotary positions (RoPE), rotary
# positions that are randomized in training (RandomizedRoPE), and a bias that
# penalizes distance linearly (ALiBi).

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
# ## Results
#
# The first plot shows the loss for each window length. The second plot shows
# the loss at each position of the longest windows. The loss of `ALiBi` falls
# with more context. The loss of `RoPE` rises beyond the training length.

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
# ## Generate text

# %%
PROMPT = "import " if DATASET == "python_source" else "The "
run(f"trainers.generate {RUN}/ALiBi --prompt='{PROMPT}' --temperature=0.7")
