"""Whether an ONNX file can run."""

import pathlib
from collections.abc import Iterator
from typing import Any


def check_onnx_file(path: Any) -> None:
    """Raises an error if a file has operations that ONNX does not have.

    For such operations, tf2onnx writes those of TensorFlow, which no program
    can run. The file is then removed.

    Args:
        path: str or path of the file.

    Raises:
        ValueError: If there are such operations.
    """
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    unknown = sorted(
        {
            node.op_type
            for node in _list_nodes(graph)
            if not node.domain and not onnx.defs.has(node.op_type)
        }
    )
    if not unknown:
        return
    pathlib.Path(path).unlink()
    raise ValueError(
        f"ONNX has no operation for {', '.join(unknown)}, which this model "
        'needs: export it with format="tf_saved_model", or replace that part '
        "of the model, such as PaTHAttention (MatrixTriangularSolve) or a "
        "sampler that draws in evaluation (random numbers)."
    )


def _list_nodes(graph: Any) -> Iterator[Any]:
    """Lists the nodes of a graph and of the graphs within, as of loops."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _list_nodes(inner)
