"""Classes that are not of this project, which a flag names with their module.

A name is `my_project.layers:LogBias`, whose module Python finds as it does in
`import my_project.layers`, or `path/layers.py:LogBias`, with a file.
"""

import difflib
import hashlib
import importlib
import inspect
import os
import pathlib
import sys

from trainers.errors import ConfigError


def split_name(text):
    """Splits the value of a flag into a module and the name in it, with a call.

    >>> split_name("my_project.layers:LogBias(slope=0.5)")
    ('my_project.layers', 'LogBias(slope=0.5)')
    >>> split_name("RoPE")
    ('', 'RoPE')
    """
    head, bracket, arguments = text.partition("(")
    module, _, name = head.rpartition(":")
    return module, name + bracket + arguments


def names_file(text):
    """Returns whether the value of a flag is a Python file, or a name in it.

    >>> names_file("grids/mine.py"), names_file("mine.py:LONG")
    (True, True)
    >>> names_file("ruoss_table_1")
    False
    """
    return (split_name(text)[0] or text).endswith(".py")


def name_of(text):
    """Returns the name of the class in the value of a flag.

    >>> name_of("my_project.layers:LogBias(slope=0.5)")
    'LogBias'
    """
    return split_name(text)[1].partition("(")[0].strip()


def name_module(text):
    """Returns the name by which Python imports the module of a class.

    >>> name_module("path/layers.py:LogBias")
    'layers'
    """
    module, _ = split_name(text)
    return pathlib.Path(module).stem if module.endswith(".py") else module


def with_whole_path(text):
    """Returns the value of a flag with the whole path of a file in it."""
    module, call = split_name(text)
    if not module.endswith(".py"):
        return text
    return f"{pathlib.Path(module).expanduser().absolute()}:{call}"


def find_class(flag, module, name, base):
    """Imports a class.

    Args:
        flag: str. Name of the flag, for messages.
        module: str. Name of its module, or the path of its file.
        name: str. Its name there.
        base: The class that it must be a subclass of.

    Raises:
        ConfigError: If there is no such class.
    """
    imported = _import(flag, module)
    found = getattr(imported, name, None)
    if inspect.isclass(found) and issubclass(found, base):
        _check_registered(flag, found)
        return found
    others = [
        other
        for other, value in vars(imported).items()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == imported.__name__
    ]
    problem = (
        f"has no {name}"
        if found is None
        else f"has a {name} that is no subclass of {base.__name__}"
    )
    near = difflib.get_close_matches(name, others, n=1) or others
    hint = f" It has {', '.join(near)}." if near else ""
    raise ConfigError(
        f"{flag} takes a subclass of {base.__name__}, but {module} {problem}."
        f"{hint}"
    )


def find_value(flag, text):
    """Imports a value, as of `my_project.data:read` or `data.py:read`.

    Args:
        flag: str. Name of the flag, for messages.
        text: str. Its module, or the path of its file, and its name there.

    Raises:
        ConfigError: If there is no such value.
    """
    module, name = split_name(with_whole_path(text))
    found = getattr(_import(flag, module), name, None)
    if found is None:
        raise ConfigError(f"{flag}: {module} has no {name!r}.")
    return found


def find_function(flag, text):
    """Imports a function, as `find_value`."""
    found = find_value(flag, text)
    if not callable(found):
        raise ConfigError(f"{flag}: {text} is not a function.")
    return found


def _check_registered(flag, cls):
    """Raises `ConfigError` for a layer that Keras could not load again."""
    # Flags are read before Keras is imported.
    import keras

    is_layer = issubclass(cls, keras.layers.Layer)
    if is_layer and keras.saving.get_registered_name(cls) == cls.__name__:
        raise ConfigError(
            f"{flag}: {cls.__name__} is not registered, so that Keras could "
            "not load a saved model: write `@keras.saving."
            'register_keras_serializable(package="my_project")` above the '
            "class."
        )


def digest_source(cls):
    """Returns a digest of the files that define a class, 16 digits.

    They are the file of the class, and those of its bases in its own package.
    """
    package = cls.__module__.partition(".")[0]
    files = {
        inspect.getsourcefile(base)
        for base in cls.__mro__
        if base.__module__.partition(".")[0] == package
    }
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(pathlib.Path(file).read_bytes())
    return found.hexdigest()[:16]


def _import(flag, module):
    file = pathlib.Path(module) if module.endswith(".py") else None
    if file is not None:
        if not os.path.isfile(file):
            raise ConfigError(f"{flag}: there is no file {file}.")
        module = file.stem
        if str(file.parent) not in sys.path:
            sys.path.append(str(file.parent))
    try:
        # A name with other characters would be a path relative to a package.
        if not all(map(str.isidentifier, module.split("."))):
            raise ModuleNotFoundError(name=module)
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ConfigError(_describe_failure(flag, module, error)) from error
        raise ConfigError(
            f"{flag}: there is no module {module} here. Name its file, as in "
            "path/layers.py:Class, or add its directory to PYTHONPATH."
        ) from None
    # Whatever the code of a user raises.
    except Exception as error:
        raise ConfigError(_describe_failure(flag, module, error)) from error
    known = getattr(imported, "__file__", None)
    if file is not None and not (known and os.path.samefile(file, known)):
        raise ConfigError(
            f"{flag}: {file} cannot be imported, because there is another "
            f"module {module}, {known}: rename the file."
        )
    return imported


def _describe_failure(flag, module, error):
    frames, place = error.__traceback__, ""
    while frames is not None:
        code = frames.tb_frame.f_code
        if not code.co_filename.startswith("<frozen"):
            place = f" ({code.co_filename}, line {frames.tb_lineno})"
        frames = frames.tb_next
    # It has its place in its text.
    if isinstance(error, SyntaxError):
        place = ""
    message = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"{flag}: {module} cannot be imported: {message}{place}."
