"""Values from a list, with the nearest match of a wrong one."""

import difflib

from trainers.errors import ConfigError

SYNONYMS = {
    **dict.fromkeys(("lr", "rate"), "learning_rate"),
    **dict.fromkeys(("epoch", "epochs", "num_epochs"), "steps"),
    **dict.fromkeys(("iterations", "iters", "max_iters"), "steps"),
    **dict.fromkeys(("batch", "bs", "bsz", "minibatch"), "batch_size"),
    **dict.fromkeys(("max_len", "max_length", "seq_len"), "train_length"),
    **dict.fromkeys(("block_size", "context_length"), "train_length"),
    **dict.fromkeys(("d_model", "dim", "embed_dim", "n_embd"), "model_dim"),
    **dict.fromkeys(("hidden_dim", "hidden_size", "width"), "model_dim"),
    **dict.fromkeys(("depth", "layers"), "num_layers"),
    **dict.fromkeys(("pe", "position_encoding", "pos_emb"), "encoding"),
    **dict.fromkeys(("dtype", "bf16", "fp16", "amp"), "precision"),
    **dict.fromkeys(("device", "devices", "gpu", "gpus"), "strategy"),
    **dict.fromkeys(("out", "out_dir", "output_dir", "output"), "workdir"),
    **dict.fromkeys(("log_dir", "logdir", "save_dir"), "workdir"),
    **dict.fromkeys(("max_grad_norm", "grad_clip", "clip"), "clip_norm"),
    **dict.fromkeys(("eval_every", "eval_steps"), "evaluate_every"),
    **dict.fromkeys(("save_every", "save_steps"), "checkpoint_every"),
    **dict.fromkeys(("scheduler", "lr_scheduler"), "learning_rate_schedule"),
    **dict.fromkeys(("resume", "init_from", "load"), "initialize_from"),
    **dict.fromkeys(("encoding", "encodings", "methods"), "candidates"),
    "ckpt": "checkpoint",
    **dict.fromkeys(("text", "input"), "prompt"),
    **dict.fromkeys(("max_tokens", "num_tokens"), "max_new_tokens"),
    "accumulate": "gradient_accumulation_steps",
    "lengths": "test_lengths",
    "vocab_size": "word_pieces",
    "wd": "weight_decay",
}
"""Flags of other programs, and ours of the same meaning."""


def check_choice(name, value, choices):
    """Raises `ConfigError` with the nearest match unless a value is allowed.

    Args:
        name: str. Name of the flag, for the message.
        value: str. Value of the flag.
        choices: Allowed values.
    """
    if value in choices:
        return
    called = value.partition("(")[0]
    if called in choices:
        hint = f" Give the name, {called}, without arguments."
    else:
        hint = suggest(value, choices)
    raise ConfigError(
        f"{name} cannot be {described(value)}.{hint} It must be one of "
        f"{', '.join(choices)}."
    )


def suggest(value, choices, prefix=""):
    """Returns a question for the choice most similar to a value, or `""`.

    Args:
        value: str. A wrong value.
        choices: Allowed values.
        prefix: str. What stands before a choice, such as `--`.

    >>> suggest("lr", ["steps", "learning_rate"], "--")
    ' Did you mean --learning_rate?'
    """
    # A long text is similar to no name, and slow to compare.
    text = value.lower()[:100]
    by_letters = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(text, by_letters, n=1)
    same = [name for name in (SYNONYMS.get(text),) if name in by_letters]
    for name in (*same, *close):
        return f" Did you mean {prefix}{by_letters[name]}?"
    return ""


def described(value):
    """Describes the value of a flag in at most 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
