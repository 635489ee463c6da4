"""Small labelled data, as stores on disk."""

import json

from datasets.labelled.columns import Columns
from datasets.labelled.rows import open_source
from datasets.labelled.split import LabelledData
from datasets.labelled.store import open_store


def open_toy(path, rows=(), **options):
    """Opens the store of a file, which is written first if there are rows."""
    if rows:
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    known = {
        "directory": path.parent / "kept",
        "columns": Columns(),
        "kind": "auto",
        "tokens": "auto",
        "bad_lines": "error",
    }
    return open_store(open_source(str(path)), **{**known, **options})


def split_toy(store, other=None, *, trained=(2,), tested=(4, 8), size=100):
    """Returns the `LabelledData` of stores."""
    return LabelledData(
        store,
        other,
        trained=trained,
        evaluated=tuple(sorted({*trained, *tested})),
        vocabulary_size=size,
    )
