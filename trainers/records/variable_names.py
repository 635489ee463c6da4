"""Names of variables that are the same in every process."""

import collections
import re

from trainers.errors import ConfigError


def name_variables(model, optimizer=None):
    """Names the variables of a model and of its optimizer by their paths.

    Keras numbers layers without a name through the whole process: the first
    `Dense` of the second model may be `dense_4`. Here numbers count the layers
    of one parent.

    Args:
        model: Built Keras model.
        optimizer: Built Keras optimizer; `None`: the model alone.

    Returns:
        Dict from names such as `model/head/kernel` to variables.

    Raises:
        ConfigError: If two variables have the same path.
    """
    slots = optimizer.variables if optimizer else []
    paths = [f"model/{variable.path}" for variable in model.weights]
    paths += [
        f"optimizer/{_split_slot(variable.path, model)}" for variable in slots
    ]
    names = _number_by_parent(paths)
    named = dict(zip(names, [*model.weights, *slots], strict=True))
    if len(named) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(
            f"two variables have the path {twice}: give the layers that own "
            "them names that differ."
        )
    return named


def _split_slot(path, model):
    """Returns the path of an optimizer's variable, the model's path in it.

    Keras names the slot `m` of a weight `a/b` of Adam `adam/a_b_m`; this gives
    `adam/a/b/m`.
    """
    owner, _, name = path.rpartition("/")
    weights = {
        weight.path.replace("/", "_"): weight.path
        for weight in model.trainable_variables
    }
    flat = max(
        (flat for flat in weights if name.startswith(f"{flat}_")),
        key=len,
        default=None,
    )
    if flat is None:
        return path
    return f"{owner}/{weights[flat]}/{name.removeprefix(f'{flat}_')}"


def _number_by_parent(paths):
    """Returns paths whose numbers count the children of one parent."""
    children = collections.defaultdict(set)
    for path in paths:
        parts = path.split("/")
        for depth, part in enumerate(parts):
            base, number = split_number(part)
            parent = "/".join(parts[:depth])
            children[parent, base].add((number, part))

    def rename(parent, part):
        base, number = split_number(part)
        group = sorted(children[parent, base])
        if len(group) == 1:
            return base
        return f"{base}_{group.index((number, part))}"

    def rename_all(path):
        parts = path.split("/")
        return "/".join(
            rename("/".join(parts[:depth]), part)
            for depth, part in enumerate(parts)
        )

    return [rename_all(path) for path in paths]


def split_number(name):
    """Returns the name and the number of `dense_4`; 0 if it has none."""
    base, number = re.fullmatch(r"(.*?)(?:_(\d+))?", name).groups()
    return base, int(number or 0)
