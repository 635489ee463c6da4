"""The flags of a program, read from its source without importing it.

So a mistake on the command line is found before Keras and TensorFlow are
imported, which takes seconds. The program itself checks all flags again.
"""

import ast
import dataclasses
import operator
import pathlib

from trainers.options.choices import check_choice
from trainers.options.option import Option, option
from trainers.options.parsing import check_operands, parse

ROOT = pathlib.Path(__file__).parents[2]

_KINDS = {"str": str, "int": int, "float": float, "bool": bool}
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Pow: operator.pow,
}


class UnknownError(Exception):
    """The source does not say it in a form that is read here."""


@dataclasses.dataclass(frozen=True)
class Flag:
    """A flag.

    Attributes:
        kind: Its type: str, int, float or bool.
        option: Its `Option`, without what is not known and without its help.
        called: Tuple of the names that its value may call; empty: it takes no
            calls, or they are not known.
    """

    kind: type
    option: Option
    called: tuple = ()

    def check(self, name, value):
        """Raises `ConfigError` for a value that cannot work."""
        value = self.option.normalize(value)
        if self.option.names_own(value):
            return  # The program itself imports it.
        self.option.check(name, value)
        if self.called and value != self.option.default:
            called = value.partition("(")[0].strip()
            if called.isidentifier():
                check_choice(name, called, self.called)


def check(module, argv):
    """Raises `ConfigError` for a mistake in the arguments of a program.

    Args:
        module: str. Name of the program, such as `trainers.algorithmic`.
        argv: List of str. The program and its arguments.
    """
    try:
        flags, operands = read(module)
    except UnknownError:
        return
    kinds = {name: flag.kind for name, flag in flags.items()}
    given, others = parse(kinds, argv)
    check_operands(others, operands)
    for name, flag in flags.items():
        if name in given:
            flag.check(f"--{name}", given[name])


def read(module):
    """Returns the `Flag`s of a program by name, and the name of its operands.

    Raises:
        UnknownError: If they are only known when the program runs.
    """
    source = _Source(module)
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(ast.Name("Experiment"), [_, config, *_]):
                return source.read_class(config), ""
            case ast.Call(
                ast.Name("run") | ast.Attribute(attr="run"),
                [config, *_],
                keywords,
            ):
                given = {word.arg: source.read(word.value) for word in keywords}
                return source.read_class(config), given.get("operands", "")
    raise UnknownError


class _Source:
    """The source of a module.

    Args:
        module: str. Name of the module.
    """

    def __init__(self, module):
        path = ROOT.joinpath(*module.split("."))
        self.is_package = path.is_dir()
        try:
            text = (
                path / "__init__.py"
                if self.is_package
                else path.with_suffix(".py")
            ).read_text()
        except OSError:
            raise UnknownError from None
        self.module = module
        self.tree = ast.parse(text)

    def find(self, name):
        """Finds a name of the module.

        Returns:
            The `_Source` that defines it, and the definition: a node of the
            value or of the statement, or `None` for the source as a whole.
        """
        for node in self.tree.body:
            match node:
                case ast.Assign([ast.Name(found)], value):
                    pass
                case ast.AnnAssign(ast.Name(found), _, value):
                    pass
                case ast.ClassDef(found) | ast.FunctionDef(found):
                    value = node
                case ast.ImportFrom(module, names):
                    for alias in names:
                        if name == (alias.asname or alias.name):
                            return _import(module, alias.name)
                    continue
                case _:
                    continue
            if found == name:
                return self, value
        raise UnknownError

    def read(self, node):
        """Returns the value of an expression; of a dict, the keys alone."""
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name):
                source, value = self.find(name)
                return source.read(value)
            case ast.Attribute(ast.Name(module), name):
                source, value = self.find(module)[0].find(name)
                return source.read(value)
            case ast.Tuple(parts) | ast.List(parts):
                return tuple(self._read_parts(parts))
            case ast.Dict(keys, values):
                parts = zip(keys, values, strict=True)
                return tuple(
                    dict.fromkeys(
                        name
                        for key, value in parts
                        for name in (
                            [self.read(key)] if key else self.read(value)
                        )
                    )
                )
            case ast.Call(ast.Name("tuple"), [value]):
                return self.read(value)
            case ast.Call(ast.Name("ByName"), [_, value]):
                return self.read(value)
            case ast.UnaryOp(ast.USub(), value):
                return -self.read(value)
            case ast.BinOp(left, sign, right) if type(sign) in _OPERATORS:
                values = self.read(left), self.read(right)
                return _OPERATORS[type(sign)](*values)
        raise UnknownError

    def _read_parts(self, parts):
        for part in parts:
            if isinstance(part, ast.Starred):
                yield from self.read(part.value)
            else:
                yield self.read(part)

    def read_class(self, node):
        """Returns the `Flag`s of a class of configurations by name."""
        match node:
            case ast.Name(name):
                source, value = self.find(name)
                return source.read_class(value)
            case ast.Call(
                ast.Name("select_options" | "_take"),
                [base, *names],
                defaults,
            ):
                known = self.read_class(base)
                selected = {n: known[n] for n in self._read_parts(names)}
                for keyword in defaults:
                    selected[keyword.arg] = self._with_default(
                        selected[keyword.arg], keyword.value
                    )
                return selected
            case ast.ClassDef():
                pass
            case _:
                raise UnknownError
        flags = {}
        for base in reversed(node.bases):
            flags.update(self.read_class(base))
        for statement in node.body:
            match statement:
                case ast.AnnAssign(ast.Name(name), ast.Name(kind), value):
                    flags[name] = self._read_flag(_KINDS[kind], value)
        return flags

    def _read_flag(self, kind, call):
        match call:
            case ast.Call(ast.Name("option"), [default, *_], keywords):
                return self._make_flag(kind, default, keywords)
            case ast.Call(ast.Name("with_default"), [base, name, default]):
                flag = self.read_class(base)[self.read(name)]
                return self._with_default(flag, default)
            case ast.Call(ast.Name(name), []):
                source, function = self.find(name)
                (*_, last) = function.body
                return source._read_flag(kind, last.value)
        raise UnknownError

    def _make_flag(self, kind, default, keywords):
        known = {}
        for keyword in keywords:
            try:
                known[keyword.arg] = self.read(keyword.value)
            except UnknownError:
                continue
        if any(keyword.arg == "base" for keyword in keywords):
            known["base"] = object
        called = known.pop("registry", ())
        field = option(self._read_default(kind, default), "", **known)
        return Flag(kind, field.metadata["option"], called)

    def _with_default(self, flag, node):
        default = self._read_default(flag.kind, node)
        changed = dataclasses.replace(flag.option, default=default)
        return dataclasses.replace(flag, option=changed)

    def _read_default(self, kind, node):
        try:
            return self.read(node)
        except UnknownError:
            return kind()


def _import(module, name):
    """Finds a name that is imported from a module, as `_Source.find` does."""
    if ROOT.joinpath(*module.split("."), f"{name}.py").exists():
        return _Source(f"{module}.{name}"), None
    return _Source(module).find(name)
