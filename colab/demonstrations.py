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
# # Two demonstrations of length generalization
#
# 1. *Even pairs*: a Transformer that was trained on strings of up to 20
#    symbols answers for strings of 100, if its positions were random in
#    training.
# 2. *Addition*: a Transformer that was trained on numbers of up to 10 digits
#    adds numbers of 100 digits, if digits that belong together share a
#    position.
#
# Each trains the same small model twice, with the plain and with the better
# positions. The notebook takes less than ten minutes on two CPU cores.
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
from colab.helpers.commands import (
    RUNS,
    SMOKE,
    read_results,
    run,
    run_and_read,
)

# %% [markdown]
# ## Even pairs
#
# Do the first and the last symbol of a string differ? One model has rotary
# positions (RoPE). The other one gets, in every training step, a random
# ordered subset of a long range of positions (RandomizedRoPE), so that it
# knows all positions of that range before it meets a longer string.

# %%
FLAGS = "--steps=3 --evaluation_examples=8" if SMOKE else ""
run(f"trainers.algorithmic --workdir={RUNS}/even_pairs {FLAGS}")

# %%
Image(f"{RUNS}/even_pairs/length_generalization.png", width=600)

# %% [markdown]
# Half of all answers are right by chance, and so are those of RoPE beyond the
# trained lengths.

# %%
even_pairs = {
    name: read_results(f"{RUNS}/even_pairs/{name}")["final"]["score"]
    for name in ("RoPE", "RandomizedRoPE")
}
print("mean accuracy at lengths 21 to 100:", even_pairs)
if not SMOKE:
    assert even_pairs["RandomizedRoPE"] > 0.8
    assert even_pairs["RandomizedRoPE"] > even_pairs["RoPE"] + 0.2

# %% [markdown]
# ## Addition
#
# A decoder with one layer writes the sum of two numbers, the least significant
# digit first. With ordinal positions (RoPE) it would have to count how far
# apart the digits are that it needs, which is different for every length. With
# coupled positions, the three digits of the same significance have the same
# position, and the model attends only to neighbouring positions. A mark `^`
# before each number has the position of the first digit of the sum, so that
# the model sees where the numbers end.
#
# Half of the training problems have structured digits: zeros, runs, equal and
# complementary parts, as in numbers that people write. Without these problems
# and the mark, the model adds uniform digits of any length, but never
# 99999 + 99999.
#
# `--preset=addition` trains both models for 3,000 steps and tests up to 500
# digits; this takes about six minutes. Here are 2,000 steps, and 100 digits.

# %%
FLAGS = (
    "--steps=3 --warmup_steps=1 --test_lengths=12 --evaluation_examples=4"
    " --generated_examples=2"
    if SMOKE
    else "--steps=2000 --test_lengths=20,50,100 --generated_examples=70"
)
run(
    "trainers.sequence_to_answer --preset=addition"
    f" --workdir={RUNS}/addition {FLAGS}"
)

# %%
Image(f"{RUNS}/addition/length_generalization.png", width=600)

# %% [markdown]
# The models have written these sums token by token: five of each of 14 kinds at
# each length, such as uniform digits, round and equal numbers. A sum is correct
# only if every digit is.

# %%
addition = {
    name: read_results(f"{RUNS}/addition/{name}")["final"]
    for name in ("ordinal", "coupled")
}
shares = {
    name: final["generated_exact_match_by_length"]
    for name, final in addition.items()
}
for name, by_length in shares.items():
    print(f"share of correct sums, {name} positions:", by_length)
if not SMOKE:
    assert shares["coupled"]["100"] > 0.9
    assert shares["ordinal"]["100"] == 0

# %% [markdown]
# ## Your own numbers
#
# The trained model adds any two whole numbers. It writes the sum after `=`, the
# least significant digit first; the line below it is for reading.

# %%
NUMBERS = [
    (1999, 2500),
    (10**20, 10**20),
    (31415926535897932384626433832795, 27182818284590452353602874713526),
]
ANSWERS = [
    run_and_read(
        f"trainers.generate {RUNS}/addition/coupled"
        f" --prompt='{first} + {second}'"
    )
    for first, second in NUMBERS
]

# %%
print("\n".join(ANSWERS))
if not SMOKE:
    for (first, second), answer in zip(NUMBERS, ANSWERS, strict=True):
        assert f" = {first + second} (right)" in answer
