"""The directive `explorer`, which shows the curves of all committed reports.

`python -m docs.build` writes the curves, which Sphinx reads without Keras.
"""

import dataclasses
import json
import pathlib

from docutils import nodes
from docutils.parsers.rst import Directive

from trainers.reports.chart import Curve, Panel
from trainers.reports.explorer import make_fragment

CURVES = pathlib.Path(__file__).with_name("results") / "curves.json"


class Explorer(Directive):
    """An element in which a reader chooses curves."""

    def run(self):
        """Returns the element."""
        self.state.document.settings.record_dependencies.add(str(CURVES))
        fragment = make_fragment(load_panels(CURVES.read_text()))
        return [nodes.raw("", fragment, format="html")]


def dump_panels(panels):
    """Returns `Panel`s as JSON, a str with a line for each curve."""
    found = [*map(dataclasses.asdict, panels)]
    text = json.dumps(found, separators=(",", ":"))
    return text.replace('{"method"', '\n{"method"') + "\n"


def load_panels(text):
    """Reads what `dump_panels` wrote, a list of `Panel`s."""
    return [
        Panel(
            **panel
            | {
                name: [Curve(**curve) for curve in panel[name]]
                for name in ("curves", "floors")
            }
        )
        for panel in json.loads(text)
    ]
