"""Lowers trainers' steps by TensorFlow's own kernels for TPUs.

Runs with the package of TensorFlow that has them. Without a TPU, it lowers
functions of tensors only: a step's variables become arguments and results.
"""

import tensorflow as tf
from tensorflow.python.framework import convert_to_constants

from trainers.options.fields import resolve
from trainers.tpu.compiler import Topology
from trainers.tpu.options import PRESETS, TpuCompileConfig
from trainers.tpu.requests import list_programs
from trainers.tpu.tensorflow_programs import trace


def without_variables(function):
    """A concrete function as one of tensors.

    Args:
        function: What `get_concrete_function` returns.

    Returns:
        A function of the arguments and the values of all captures, which
        returns the results and the variables' values afterwards; and
        `TensorSpec`s of its arguments.
    """
    inlined = convert_to_constants._run_inline_graph_optimization(
        function, lower_control_flow=False, aggressive_inlining=True
    )
    specs = {
        inside.op.name: tf.TensorSpec(inside.shape, inside.dtype)
        for inside in function.inputs
    }
    variables = {id(v.handle): v for v in function.graph.variables}
    for outside, inside in function.graph.captures:
        if outside.dtype == tf.resource:
            value = variables[id(outside)]
            specs[inside.op.name] = tf.TensorSpec(value.shape, value.dtype)

    def run(*given):
        state = dict(zip(specs, given, strict=True))
        found = {}
        for node in in_order(inlined):
            inputs = [found[name] for name in data_inputs(node)]
            outputs = compute(node, inputs, state)
            for index, output in enumerate(outputs):
                found[f"{node.name}:{index}"] = output
        return list(state.values())

    return run, [*specs.values()]


def compute(node, inputs, state):
    """Outputs of a node; a variable's handle is its name in `state`."""
    if node.op == "Placeholder":
        resource = node.attr["dtype"].type == tf.resource.as_datatype_enum
        return [node.name if resource else state[node.name]]
    if inputs and isinstance(inputs[0], str):
        name, *inputs = inputs
        if node.op == "Identity":
            return [name]
        if node.op == "ReadVariableOp":
            return [state[name]]
        if node.op == "ResourceGather":
            return [tf.gather(state[name], *inputs)]
        new = {
            "AssignVariableOp": lambda old, value: value,
            "AssignAddVariableOp": tf.add,
            "AssignSubVariableOp": tf.subtract,
        }[node.op]
        state[name] = new(state[name], *inputs)
        return []
    if node.op == "NoOp":
        return []
    graph = tf.compat.v1.get_default_graph()
    attributes = dict(node.attr)
    return graph.create_op(node.op, inputs, None, attrs=attributes).outputs


def data_inputs(node):
    """Names of the tensors that a node reads, with their index."""
    names = [name for name in node.input if not name.startswith("^")]
    return [name if ":" in name else f"{name}:0" for name in names]


def in_order(graph_def):
    """Nodes after all that they read or wait for."""
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    return [operation.node_def for operation in graph.get_operations()]


def main():
    """Prints, for some steps, how often each sums over the replicas."""
    for encoding in ("RandomizedRoPE", "RandomizedRelativeEncoding"):
        flags = {"trainer": "encoder", "encoding": encoding}
        for program in list_programs(resolve(TpuCompileConfig, PRESETS, flags)):
            function, *_ = trace(
                program.experiment,
                program.config,
                program.mode,
                64,
                Topology(program.topology),
            )
            run, specs = without_variables(function)
            text = tf.function(run, jit_compile=True)
            text = text.experimental_get_compiler_ir(*specs)(
                stage="stablehlo", platform_name="TPU"
            )
            sums = text.count('"stablehlo.all_reduce"(')
            print(encoding, program.mode, sums, flush=True)


if __name__ == "__main__":
    main()
