"""Positions that a trained model gets at evaluation, chosen again."""

import ast
import dataclasses

from keras_lengen.checks.constructors import constructor_arguments
from trainers.errors import ConfigError
from trainers.options.layers import ALL_ENCODINGS, ALL_SAMPLERS, build_encoding

_REGISTRY = {**ALL_ENCODINGS, **ALL_SAMPLERS}


def with_evaluation(config, evaluation):
    """Returns a configuration whose samplers evaluate in another way.

    Args:
        config: Configuration of a run.
        evaluation: str. Argument `evaluation` of every sampler and randomized
            form that the configuration names, such as `"even"`; empty: as the
            run has it.

    Raises:
        ConfigError: If none of them has that argument, or one does not know
            the value.

    >>> from trainers.options.fields import LengthsConfig
    >>> config = LengthsConfig(encoding="RandomizedRoPE", max_position=64)
    >>> with_evaluation(config, "even").encoding
    "RandomizedRoPE(evaluation='even')"
    """
    if not evaluation:
        return config
    texts = {
        name: _set_evaluation(getattr(config, name), evaluation)
        for name in ("encoding", "sampler")
    }
    changed = dataclasses.replace(config, **texts)
    if changed == config:
        raise ConfigError(
            "--evaluation chooses how positions are drawn, but "
            f"--encoding={config.encoding} draws none: remove it."
        )
    # Its constructors check the value.
    build_encoding(changed)
    return changed


def _set_evaluation(text, evaluation):
    if not text:
        return text
    tree = ast.parse(text.strip(), mode="eval").body
    return ast.unparse(_change(tree, evaluation))


def _change(tree, evaluation):
    """Returns the tree of a name or a call with the argument set."""
    call = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
    arguments = {
        keyword.arg: _change(keyword.value, evaluation)
        if keyword.arg in ("row", "column")
        else keyword.value
        for keyword in call.keywords
    }
    if "evaluation" in constructor_arguments(_REGISTRY[call.func.id]):
        arguments["evaluation"] = ast.Constant(evaluation)
    keywords = [ast.keyword(name, value) for name, value in arguments.items()]
    return ast.Call(call.func, [], keywords) if keywords else call.func
