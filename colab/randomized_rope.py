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
# Two small Transformers are trained on the same task, with strings of 1 to 20
# bits. One model has rotary position embeddings (RoPE). The other has RoPE with
# randomized positions: a random ordered subset of a longer range. Both are
# tested on strings of up to 100 bits. The notebook takes less than ten minutes
# on two CPU cores.
#
# In Colab, the first cell installs the library from its repository, beside
# Colab's packages. In a checkout, where the library is installed already, the
# cell does nothing.

# %%
import os

if not os.path.isdir("../keras_lengen"):  # not in a checkout, as in Colab
    address = "https://example.org/keras_lengen"
    # %pip install --quiet "keras_lengen @ git+{address}"

# %%
import keras
import matplotlib.pyplot as plt
import numpy as np

from keras_lengen.layers import MultiHeadAttention, RandomizedRoPE, RoPE

# SMOKE: only three training steps, to check that the notebook runs.
SMOKE = os.environ.get("KERAS_LENGEN_SMOKE") == "1"
STEPS = 3 if SMOKE else 2000
TEST_LENGTHS = [10, 20, 30, 40, 60, 80, 100]
TEST_EXAMPLES = 16 if SMOKE else 512

# %% [markdown]
# ## The task
#
# Are the first and the last bit of a string equal? The token 2 ends a string,
# and the model predicts the answer at this token. All strings of a batch have
# the same length.


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
# The model is a Transformer with two layers. The encoding is an argument of the
# attention layer; everything else is plain Keras. `max_position` is the size of
# the range from which positions are drawn. It must be at least the longest test
# length.


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
    """Returns the accuracy on strings of this length."""
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
# ## Results
#
# Random guessing has an accuracy of 0.5. Strings longer than 20 bits contain
# distances that RoPE has never seen in training. Randomized RoPE draws training
# positions from 0 to 255, so it has seen the distances of longer strings.

# %%
figure, axes = plt.subplots()
for name, by_length in accuracy.items():
    axes.plot(list(by_length), list(by_length.values()), "o-", label=name)
axes.axvline(20, color="gray", linestyle=":", label="longest training length")
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
