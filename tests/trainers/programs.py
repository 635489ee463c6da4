"""The flags of programs of `trainers`."""

import dataclasses
import importlib


def find_config_class(module):
    """Returns the class of the flags of a program, and its presets."""
    if hasattr(module, "EXPERIMENT"):
        return module.EXPERIMENT.config, module.EXPERIMENT.presets
    if module.__name__ == "trainers.finetune":
        made = importlib.import_module("trainers.algorithmic").EXPERIMENT
        return module.make_config_class(made.config(encoding="RoPE")), {}
    if module.__name__ == "trainers.choose":
        made = importlib.import_module("trainers.examples").EXPERIMENT
        return module.make_config_class(made.config), made.presets
    (found,) = (
        value
        for value in vars(module).values()
        if dataclasses.is_dataclass(value)
        and value.__name__.endswith("Config")
        # A program's, or those of its folder.
        and value.__module__.endswith((module.__name__, ".options"))
    )
    return found, getattr(module, "PRESETS", {})
