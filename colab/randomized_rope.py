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
# # Randomized RoPE in your own Keras model
#
# Two small Transformers learn the same task from strings of 1 to 20 bits. One
# has rotary positions (RoPE), the other one rotary positions that are a random
# ordered subset of a longer range (randomized RoPE). Both are tested on strings
# of up to 100 bits. The notebook takes less than ten minutes on two CPU cores.
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

# %%
from trainers import import_tensorflow_quietly

# Without the notes of its start.
import_tensorflow_quietly()

import keras
import matplotlib.pyplot as plt
import numpy as np

from keras_lengen.layers import MultiHeadAttention, RandomizedRoPE, RoPE

# Only three training steps, to check that the notebook runs.
SMOKE = os.environ.get("KERAS_LENGEN_SMOKE") == "1"
STEPS = 3 if SMOKE else 2000
TEST_LENGTHS = [10, 20, 30, 40, 60, 80, 100]
TEST_EXAMPLES = 16 if SMOKE else 512

# %% [markdown]
# ## The task
#
# Are the first and the last bit of a string equal? The token 2 ends a string,
# and the model answers there. All strings of a batch have the same length.


# %%
def make_problems(rng, count, length):
    """Draws strings `(count, length + 1)` and their answers `(count,)`."""
    bits = rng.integers(0, 2, (count, length), dtype="int32")
    tokens = np.pad(bits, [(0, 0), (0, 1)], constant_values=2)
    return tokens, (bits[:, 0] == bits[:, -1]).astype("int32")


class TrainingBatches(keras.utils.PyDataset):
    """Batches of strings of 1 to 20 bits."""

    def __len__(self):
        return STEPS

    def __getitem__(self, step):
        rng = np.random.default_rng([0, step])
        return make_problems(rng, 128, int(rng.integers(1, 21)))


make_problems(np.random.default_rng(1), 3, 5)

# %% [markdown]
# ## The model
#
# A Transformer of two layers. The encoding is an argument of the attention; all
# else is plain Keras. `max_position` is the size of the range from which random
# positions are drawn, and at least the longest length that is tested.


# %%
def make_model(make_encoding):
    """Builds a Transformer whose attention layers have this encoding."""
    tokens = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(3, 64)(tokens)
    for _ in range(2):
        normed = keras.layers.LayerNormalization()(x)
        attention = MultiHeadAttention(8, 8, encoding=make_encoding())
        x = x + attention(normed, normed)
        hidden = keras.layers.LayerNormalization()(x)
        hidden = keras.layers.Dense(256, activation="relu")(hidden)
        x = x + keras.layers.Dense(64)(hidden)
    last = keras.layers.LayerNormalization()(x[:, -1])
    model = keras.Model(tokens, keras.layers.Dense(2)(last))
    model.compile(
        keras.optimizers.Adam(1e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        # One program for all lengths, instead of one program for each.
        jit_compile=False,
    )
    return model


# %% [markdown]
# ## Training and testing


# %%
def measure_accuracy(model, length):
    """Returns the share of right answers to strings of this length."""
    rng = np.random.default_rng([1, length])
    tokens, answers = make_problems(rng, TEST_EXAMPLES, length)
    outputs = model.predict(tokens, verbose=0)
    return float(np.mean(outputs.argmax(-1) == answers))


encodings = {
    "RoPE": RoPE,
    "RandomizedRoPE": lambda: RandomizedRoPE(max_position=256),
}
accuracy = {}
for name, make_encoding in encodings.items():
    keras.utils.set_random_seed(0)
    model = make_model(make_encoding)
    print(name)
    model.fit(TrainingBatches(), shuffle=False)
    accuracy[name] = {
        length: measure_accuracy(model, length) for length in TEST_LENGTHS
    }
    print(name, accuracy[name])

# %% [markdown]
# ## Result
#
# Half of all answers are right by chance. Strings longer than 20 bits have
# distances that RoPE never saw in training. Randomized RoPE drew positions from
# 0 to 255 in training, so that it has seen the distances of longer strings.

# %%
figure, axes = plt.subplots()
for name, by_length in accuracy.items():
    axes.plot(list(by_length), list(by_length.values()), "o-", label=name)
axes.axvline(20, color="gray", linestyle=":", label="longest trained length")
axes.axhline(0.5, color="gray", label="chance")
axes.set_xlabel("length")
axes.set_ylabel("accuracy")
axes.legend()
plt.show()

# %%
unseen = [length for length in TEST_LENGTHS if length > 20]
mean = {
    name: float(np.mean([by_length[length] for length in unseen]))
    for name, by_length in accuracy.items()
}
print(mean)
if not SMOKE:
    assert accuracy["RandomizedRoPE"][20] > 0.9
    assert mean["RandomizedRoPE"] > mean["RoPE"] + 0.1
