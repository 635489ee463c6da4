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
