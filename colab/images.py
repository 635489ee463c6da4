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
# A small Transformer classifies images of handwritten digits. It reads an image
# as a sequence of gray values, row by row, with a delimiter after each row. It
# is trained on images of 8 x 8 pixels and tested on images of up to 24 x 24
# pixels, about nine times as many tokens. The notebook takes less than ten
# minutes on two CPU cores.
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

RUN = f"{RUNS}/digits"


# %% [markdown]
# ## Training
#
# The digits are scikit-learn's. To train on your own images, use
# `--dataset=folder --data_dir=~/photos` with one folder for each class. One
# model has a sinusoidal encoding of ordinal positions, the other a sinusoidal
# encoding of randomized positions.

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
# ## Results
#
# Randomized positions reduce the accuracy at the training size, and preserve
# much of it on larger images. There are ten classes, so random guessing has an
# accuracy of 0.1.

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
# ## Attention
#
# `trainers.analyze` plots images as the model reads them, and the attention
# weights of its layers.

# %%
run(f"trainers.analyze {RUN}/RandomizedSinusoidalEncoding")

# %%
Image(f"{RUN}/RandomizedSinusoidalEncoding/images.png", width=800)
