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
# 1. *Even pairs*: a Transformer trained on strings of up to 20 symbols is
#    accurate on strings of 100 symbols if its positions were random in
#    training.
# 2. *Addition*: a Transformer trained on numbers of up to 10 digits adds
#    numbers of 100 digits if digits of the same significance share a position.
#
# Each demonstration trains the same small model twice: with ordinal positions,
# and with positions that generalize to longer sequences. The notebook takes
# less than ten minutes on two CPU cores.
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
from helpers.commands import (
    RUNS,
    SMOKE,
    read_results,
    run,
    run_and_read,
)
from IPython.display import Image

# %% [markdown]
# ## Even pairs
#
# The task: are the first and the last bit of a string equal? One model uses
# rotary position embeddings (RoPE). The other model uses RoPE with randomized
# positions (RandomizedRoPE): every training step draws a random ordered subset
# of a long range of positions. After training, the model has seen all positions
# of that range, so longer strings contain no unseen positions.

# %%
FLAGS = "--steps=3 --test_lengths=30 --evaluation_examples=8" if SMOKE else ""
run(f"trainers.algorithmic --workdir={RUNS}/even_pairs {FLAGS}")

# %%
Image(f"{RUNS}/even_pairs/length_generalization.png", width=600)

# %% [markdown]
# Random guessing has an accuracy of 0.5, which RoPE approaches beyond the
# training lengths.

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
# A decoder with one layer writes the sum of two numbers, least significant
# digit first. With ordinal positions (RoPE), the distance between digits of the
# same significance grows with the numbers, so training on short numbers does
# not show the distances of long ones. With coupled positions, these digits
# share one position, and the model attends only to nearby positions. A mark `^`
# before each number shows the model where the number begins.
#
# Half of the training problems have structured digits, as in numbers that
# people write: zeros, runs of equal digits, equal and complementary numbers.
# Without these problems and the mark, the model adds long numbers with uniform
# digits, but not 99999 + 99999.
#
# `--preset=addition` trains both models for 3,000 steps and tests up to 500
# digits, which takes about six minutes. This notebook trains for 2,000 steps
# and tests up to 100 digits.

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
# The models generated these sums token by token. At each length, there are five
# problems of each of 14 kinds, such as uniform digits, round numbers and equal
# numbers. A sum is correct only if every digit is correct.

# %%
addition = {
    name: read_results(f"{RUNS}/addition/{name}")["final"]
    for name in ("ordinal", "coupled")
}
accuracy = {
    name: final["generated_exact_match_by_length"]
    for name, final in addition.items()
}
for name, by_length in accuracy.items():
    print(f"exact-match accuracy, {name} positions:", by_length)
if not SMOKE:
    assert accuracy["coupled"]["100"] > 0.9
    assert accuracy["ordinal"]["100"] == 0

# %% [markdown]
# ## Your own numbers
#
# The trained model adds any two whole numbers. It writes the sum after `=`,
# least significant digit first. The line below shows the sum as usual.

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
    for first, second in NUMBERS[: 1 if SMOKE else None]
]

# %%
print("\n".join(ANSWERS))
if not SMOKE:
    for (first, second), answer in zip(NUMBERS, ANSWERS, strict=True):
        assert f" = {first + second} (right)" in answer
