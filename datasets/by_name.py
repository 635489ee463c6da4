"""Dicts whose error for an unknown name says which names there are."""

import difflib


class ByName(dict):
    """A dict of objects by name.

    Args:
        kind: str. What the objects are, such as `"task"`.
        objects: Dict of the objects.

    >>> ByName("task", {"copy": 1, "reverse": 2})["revers"]
    Traceback (most recent call last):
    ...
    KeyError: "there is no task 'revers'. Did you mean reverse? The names are
    copy, reverse."
    """

    def __init__(self, kind, objects):
        super().__init__(objects)
        self.kind = kind

    def __missing__(self, name):
        near = difflib.get_close_matches(str(name)[:100], self, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise KeyError(
            f"there is no {self.kind} {name!r}.{hint} The names are "
            f"{', '.join(self)}."
        )
