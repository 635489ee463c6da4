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
# # Longer context for a KerasHub model
#
# A Llama that was trained on sequences of 128 tokens fails on longer ones. This
# notebook changes its positions with `RetrofittedModel`, first without training
# (YaRN), then with a short training on sequences of 128 tokens whose positions
# reach 1,024 (skipped positions, with LoRA). The changed model reads, and
# generates, sequences eight times as long as it was trained on. The notebook
# takes less than five minutes on two CPU cores.
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
import pathlib

import keras
import keras_hub
import matplotlib.pyplot as plt
import numpy as np

from keras_lengen.layers import SkippedPositions, YaRN
from keras_lengen.retrofit import RetrofittedModel

# SMOKE: only three training steps, to check that the notebook runs.
SMOKE = os.environ.get("KERAS_LENGEN_SMOKE") == "1"
TRAINED, LONG = 128, 1024  # tokens
STEPS, STEPS_AFTER = (3, 3) if SMOKE else (800, 100)
WINDOWS = 2 if SMOKE else 24
keras.utils.set_random_seed(0)

# %% [markdown]
# ## A text
#
# The text is the source of Python's standard library, which every machine has.
# Its bytes are the tokens. The last tenth is for testing.


# %%
files = sorted(pathlib.Path(os.__file__).parent.glob("*.py"))
text = np.frombuffer(b"".join(file.read_bytes() for file in files), "uint8")
training_text, test_text = np.split(text, [len(text) * 9 // 10])
print(f"{len(text):,} bytes of {len(files)} files")


def draw_windows(rng, source, count, length):
    """Draws windows `(count, length + 1)` of a text."""
    begins = rng.integers(0, len(source) - length, (count, 1))
    return source[begins + np.arange(length + 1)].astype("int32")


def make_inputs(token_ids):
    """Makes the inputs of a KerasHub model, without padding."""
    return {"token_ids": token_ids, "padding_mask": np.ones_like(token_ids)}


# %% [markdown]
# ## A model
#
# Without a network, a small Llama is trained here for a minute. With one, take
# a pretrained model in its place, and the tokens of its tokenizer in place of
# bytes:
#
# ```python
# backbone = keras_hub.models.Llama3Backbone.from_preset("llama3.2_1b")
# ```
#
# `TRAINED` is then the length that this model was trained on.

# %%
backbone = keras_hub.models.LlamaBackbone(
    vocabulary_size=256,
    num_layers=3,
    num_query_heads=4,
    num_key_value_heads=2,
    hidden_dim=128,
    intermediate_dim=256,
)


def fit(task, steps, learning_rate):
    """Trains a language model on windows of the trained length."""
    task.compile(
        keras.optimizers.Adam(learning_rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        sampler="top_k",
        jit_compile=False,
    )
    rng = np.random.default_rng(0)
    windows = draw_windows(rng, training_text, 16 * steps, TRAINED)
    inputs, targets = make_inputs(windows[:, :-1]), windows[:, 1:]
    task.fit(inputs, targets, batch_size=16, shuffle=False, verbose=2)


task = keras_hub.models.LlamaCausalLM(backbone=backbone, preprocessor=None)
fit(task, STEPS, 2e-3)

# %% [markdown]
# ## The loss at each position
#
# The original model reads windows of 1,024 bytes. Each byte is predicted from
# all bytes of the window before it, so later ones should be easier.


# %%
def measure(task):
    """Returns the loss in bits per byte, a mean of 64 positions at a time."""
    rng = np.random.default_rng(1)
    windows = draw_windows(rng, test_text, WINDOWS, LONG)
    logits = task.predict(make_inputs(windows[:, :-1]), batch_size=4, verbose=0)
    losses = keras.losses.sparse_categorical_crossentropy(
        windows[:, 1:], logits, from_logits=True
    )
    by_position = keras.ops.convert_to_numpy(losses).mean(axis=0) / np.log(2)
    return by_position.reshape(-1, 64).mean(axis=1)


curves = {"original": measure(task)}

# %% [markdown]
# ## New positions without training
#
# `RetrofittedModel` changes the backbone in place; no weight is copied. `YaRN`
# rotates the slow pairs of features more slowly, so that 1,024 positions turn
# them as far as 128 did in training. `make_task` makes a task with the new
# positions.

# %%
yarn = YaRN(original_length=TRAINED, scaling_factor=LONG / TRAINED)
model = RetrofittedModel(backbone, encoding=yarn)
task = model.make_task(keras_hub.models.LlamaCausalLM)
curves["YaRN"] = measure(task)

# `restore` gives the backbone back as it was.
backbone = model.restore()

# %% [markdown]
# ## New positions with a short training
#
# `SkippedPositions` (PoSE) cuts each training window into pieces and skips
# positions between them. Windows of 128 bytes so train positions up to 1,024.
# Only the small matrices of LoRA are trained, for an eighth of the steps. In
# evaluation, `SkippedPositions` counts tokens 0, 1, 2, ...

# %%
model = RetrofittedModel(
    backbone, sampler=SkippedPositions(max_position=LONG, seed=0), encoding=yarn
)
model.backbone.enable_lora(8)
task = model.make_task(keras_hub.models.LlamaCausalLM)
trained = sum(weight.numpy().size for weight in task.trainable_weights)
print(f"{trained:,} parameters of {task.count_params():,} are trained")
fit(task, STEPS_AFTER, 2e-3)
curves["YaRN and skipped positions"] = measure(task)

# %% [markdown]
# ## Results

# %%
figure, axes = plt.subplots()
for name, losses in curves.items():
    axes.plot(32 + 64 * np.arange(len(losses)), losses, "o-", label=name)
axes.axvline(TRAINED, color="gray", linestyle=":", label="trained length")
axes.set_xlabel("position")
axes.set_ylabel("bits per byte")
axes.legend()
plt.show()

# %%
far = {name: float(losses[4:].mean()) for name, losses in curves.items()}
print("bits per byte at the positions from 256 on:", far)
if not SMOKE:
    assert curves["original"][0] < 4
    assert far["YaRN"] < far["original"] - 0.3
    assert far["YaRN and skipped positions"] < far["YaRN"]

# %% [markdown]
# ## Generate
#
# The model continues a prompt that is several times as long as the windows it
# was trained on. Generation with KerasHub's cache uses the new positions.

# %%
PROMPT, NEW = 600, 100
tokens = np.zeros((1, PROMPT + NEW), "int32")
tokens[0, :PROMPT] = test_text[:PROMPT]
is_prompt = np.arange(PROMPT + NEW) < PROMPT
generated = task.generate(
    {"token_ids": tokens, "padding_mask": is_prompt[None].astype("int32")},
    stop_token_ids=None,
)["token_ids"][0]
written = bytes(np.asarray(generated, "uint8")).decode("latin-1")
print(f"prompt: ...{written[PROMPT - 100 : PROMPT]!r}")
print(f"continued: {written[PROMPT:]!r}")

# %% [markdown]
# The model is saved as itself, with its new positions.

# %%
model.save("longer.keras")
loaded = keras.saving.load_model("longer.keras")
inputs = make_inputs(tokens[:, :PROMPT])
difference = keras.ops.abs(loaded(inputs) - model(inputs))
print("largest difference after loading:", float(keras.ops.max(difference)))
os.remove("longer.keras")
