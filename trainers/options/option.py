"""Fields of a configuration, each of them a flag."""

import dataclasses
import operator
import os
from collections.abc import Collection, Mapping

from trainers.errors import ConfigError
from trainers.options.choices import check_choice, described
from trainers.options.own_classes import (
    names_file,
    split_name,
    with_whole_path,
)

LARGEST_INTEGER = 2**31 - 1
"""Largest value of a flag with integers, unless its option says otherwise."""

SMALLEST, LARGEST = 2.0**-126, (2 - 2.0**-23) * 2.0**127
"""Range of float32, without 0."""


@dataclasses.dataclass(frozen=True)
class Option:
    """Properties of a flag beside its name and type.

    Attributes:
        default: Default value, which is not checked.
        help: str. Text for `--help`.
        choices: Allowed values; empty: any. `--help` describes the objects
            that the values name if they are the keys of a dict.
        registry: Dict from names to classes. The value is such a name, or a
            call of it with arguments; `trainers.options.layers.build` makes
            the object. `--help` describes the classes.
        base: The class that classes of one's own are subclasses of, which the
            flag also takes, with their modules; `None`: it takes none.
        least: Smallest allowed value, or `None`.
        above: Number that values must be above, or `None`.
        most: Largest allowed value, or `None`.
        below: Number that values must be below, or `None`.
        takes_file: bool. Whether the value may also name a Python file, as
            `path/file.py` or `path/file.py:name`, in place of a choice.
        is_path: bool. Whether the value is the path of a file or directory.
        is_text: bool. Whether spaces at the ends of the value have a meaning.
        changes_result: bool. Whether the result depends on the flag: a run
            cannot resume with another value.
        changes_program: bool. Whether compiled programs depend on the flag.
        names_data: bool. Whether the flag says which data are read.
    """

    default: str | int | float | bool
    help: str
    choices: Collection = ()
    registry: Mapping = dataclasses.field(default_factory=dict)
    base: type | None = None
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    takes_file: bool = False
    is_path: bool = False
    is_text: bool = False
    changes_result: bool = True
    changes_program: bool = False
    names_data: bool = False

    @property
    def names(self):
        """Dict from the names that the flag takes to what they name."""
        if self.registry or not isinstance(self.choices, Mapping):
            return self.registry
        # Presets, which are dicts of fields, have a description of their own.
        plain = any(isinstance(v, Mapping) for v in self.choices.values())
        return {} if plain else self.choices

    def normalize(self, value):
        """Returns a value of the user without what has no meaning."""
        if self.is_path:
            return os.path.expanduser(value)
        if self.base:
            return with_whole_path(value.strip())
        if isinstance(value, str) and not self.is_text:
            return value.strip()
        return value

    def check(self, flag, value):
        """Raises `ConfigError` for an invalid value."""
        if value == self.default:
            return
        self._check_kind(flag, value)
        if isinstance(value, str):
            check_text(flag, value)
        is_own = self.names_own(value)
        is_file = self.takes_file and names_file(value)
        if self.choices and not (is_own or is_file):
            check_choice(flag, value, self.choices)
        if self.registry or is_own:
            # Flags are read before Keras is imported.
            from trainers.options.calls import parse_call

            parse_call(flag, value, self.registry, self.base)
        if self.is_path:
            _check_path(flag, value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            self._check_number(flag, value)

    def names_own(self, value):
        """Whether a value names a class of one's own, with its module."""
        return self.base is not None and bool(split_name(value)[0])

    def _check_kind(self, flag, value):
        # Configurations are also read from files.
        kind = type(self.default)
        kinds = (float, int) if kind is float else (kind,)
        if type(value) not in kinds:
            raise ConfigError(
                f"{flag} must be of type {kind.__name__}; got "
                f"{described(value)}."
            )

    def describe_bounds(self):
        """Describes the numbers that are allowed, as `above 0`, or `""`."""
        return " and ".join(
            f"{words} {bound}" for words, (bound, _) in self._bounds.items()
        )

    @property
    def _bounds(self):
        bounds = {
            "at least": (self.least, operator.ge),
            "above": (self.above, operator.gt),
            "at most": (self.most, operator.le),
            "below": (self.below, operator.lt),
        }
        return {
            words: (bound, is_within)
            for words, (bound, is_within) in bounds.items()
            if bound is not None
        }

    def _check_number(self, flag, value):
        # NaN is within no bound.
        if not all(
            is_within(value, bound)
            for bound, is_within in self._bounds.values()
        ):
            raise ConfigError(
                f"{flag} must be {self.describe_bounds()}; got {value}."
            )
        if value and not SMALLEST <= abs(value) <= LARGEST:
            raise ConfigError(
                f"{flag} must be within the range of float32; got {value}."
            )


def option(default, help_text, **known):
    """Returns a field of a configuration.

    Args:
        default: Default value of the flag.
        help_text: Text for `--help`.
        **known: Further attributes of `Option`. Unless they say otherwise,
            integers are at least 1 and at most `LARGEST_INTEGER`.
    """
    if type(default) is int:
        known = {"least": 1, "most": LARGEST_INTEGER, **known}
    return dataclasses.field(
        default=default,
        metadata={"option": Option(default, help_text, **known)},
    )


def with_default(config_class, name, default):
    """Returns a field of a class of configurations with another default."""
    known = dataclasses.replace(options(config_class)[name], default=default)
    return dataclasses.field(default=default, metadata={"option": known})


def select_options(config_class, *names, **defaults):
    """Returns a frozen dataclass with some fields of other configurations.

    Args:
        config_class: Class of configurations, or a configuration.
        *names: Names of its fields, str.
        **defaults: Other defaults of these fields.
    """
    known = {field.name: field for field in dataclasses.fields(config_class)}
    fields = [
        (
            name,
            known[name].type,
            with_default(
                config_class, name, defaults.get(name, known[name].default)
            ),
        )
        for name in names
    ]
    return dataclasses.make_dataclass("SelectedConfig", fields, frozen=True)


def options(config):
    """Returns the `Option`s of a configuration or its class, by name."""
    return {
        field.name: field.metadata["option"]
        for field in dataclasses.fields(config)
    }


def check_options(config):
    """Raises `ConfigError` for the first value that is invalid by itself."""
    for name, known in options(config).items():
        known.check(f"--{name}", getattr(config, name))


def format_flag(name, value):
    """Returns a flag as on a command line, with a value of its type."""
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no{name}"
    return f"--{name}={value}"


def check_unused(config, names, because):
    """Raises `ConfigError` for a flag that is given and has no effect.

    Args:
        config: Configuration.
        names: Iterable of str. Names of flags that have no effect.
        because: str. The reason, as in `with --task=copy`.
    """
    for name in names:
        if getattr(config, name) != options(config)[name].default:
            raise ConfigError(f"--{name} has no effect {because}: remove it.")


def check_text(name, value):
    """Raises `ConfigError` for a str that no encoding writes.

    The bytes of a command line that are not UTF-8 become halves of pairs of
    surrogates, which JSON files, plots and TensorFlow do not take.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            f"{name} must be text in UTF-8; got {described(value)}."
        ) from None


def _check_path(flag, value):
    got = described(value)
    if "://" in value:
        raise ConfigError(
            f"{flag} is a path of a file system; got {got}: use a disk, or "
            "mount the bucket."
        )
    if "\0" in value or not value.strip():
        raise ConfigError(
            f"{flag} is a path of a file system; got {got}: name a file or a "
            "directory."
        )
    if value.startswith("~"):
        raise ConfigError(
            f"{flag} is a path of a file system; got {got}, which is in no "
            "home directory of this machine: write the whole path."
        )
    # What Linux takes for a path, and for a name in it.
    encoded = value.encode()
    if len(encoded) > 4096 or max(map(len, encoded.split(b"/"))) > 255:
        raise ConfigError(
            f"{flag} is a path of a file system; got {got}, which is longer "
            "than file systems take: choose a shorter one."
        )
