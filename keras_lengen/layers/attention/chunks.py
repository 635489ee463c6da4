"""Attention computed in chunks of queries, which saves memory."""

import keras
from keras import ops

QUERY_AXES = {"query": 1, "inputs": 1, "positions": -1, "indices": 0, "mask": 2}
"""Index of the axis of the queries in each tensor of the queries."""


def attend_in_chunks(
    attend, queries, others, *, chunk_size, shape, layer, generator=None
):
    """Applies `attend` to one chunk of queries after the other.

    The intermediate results of a chunk are not kept; the backward pass
    computes them again. Memory therefore never holds the scores of more than
    one chunk, and grows with the length instead of with its square.

    Args:
        attend: Function `attend(queries, others)` of a chunk of the queries
            and of all `others`; it returns a float tensor
            `(B, chunk_size, H, value_dim)`.
        queries: Dict of the tensors that have an axis of queries, with the
            keys of `QUERY_AXES`. Each value is a tensor, a pair of tensors, or
            `None`.
        others: Dict of the tensors that all chunks need, with values of the
            same kinds.
        chunk_size: int, at least 1. Number of queries in a chunk.
        shape: Tuple `(H, value_dim)` of the last axes of the result.
        layer: Layer whose variables `attend` reads.
        generator: `SeedGenerator` that `attend` draws from, or `None`.

    Returns:
        Float tensor `(B, T, H, value_dim)` of the dtype of the values.
    """
    tokens = ops.shape(queries["indices"])[0]
    chunks = -(-tokens // chunk_size)
    absent = {name for name, tensor in queries.items() if tensor is None}
    absent_others = {name for name, tensor in others.items() if tensor is None}
    others = _drop_absent(others)
    sliced = _map_tensors(
        lambda name, tensor: _split(tensor, QUERY_AXES[name], chunk_size),
        _drop_absent(queries),
    )
    variables = [
        variable
        for variable in layer.variables
        if keras.backend.is_float_dtype(variable.dtype)
    ]
    if generator is not None:
        # The random states are drawn outside the chunks, so that a chunk draws
        # the same numbers when the backward pass computes it again.
        sliced["seed"] = keras.random.randint(
            (chunks, 2), 0, 2**24, dtype="int32", seed=generator
        )
    # Copies, which are tensors: a TensorFlow variable passed as an argument
    # gets no gradient in eager mode.
    values = [ops.copy(variable) for variable in variables]
    structure = (sliced, values, others)
    dtypes = [tensor.dtype for tensor in keras.tree.flatten(structure)]

    # Everything is an argument, because a tensor that is not an argument would
    # lose its gradient.
    @keras.remat
    def chunk(*tensors):
        slices, values, rest = keras.tree.pack_sequence_as(
            structure, list(map(ops.cast, tensors, dtypes))
        )
        states = list(zip(variables, values, strict=True))
        slices = dict(slices)
        if generator is not None:
            seed = ops.cast(slices.pop("seed"), generator.state.dtype)
            states.append((generator.state, seed))
        slices = _map_tensors(
            lambda name, tensor: ops.moveaxis(tensor, 0, QUERY_AXES[name]),
            slices,
        )
        with keras.StatelessScope(state_mapping=states):
            return attend(
                {**slices, **dict.fromkeys(absent)},
                {**rest, **dict.fromkeys(absent_others)},
            )

    # Cast outside the chunks, because each chunk would keep its own copy.
    fixed = [*values, *map(_cast_to_float, keras.tree.flatten(others))]
    batch_size = others["value"].shape[0]
    outputs = _map_one_by_one(
        lambda *slices: chunk(*map(_cast_to_float, slices), *fixed),
        keras.tree.flatten(sliced),
        shape=(batch_size, chunk_size, *shape),
        dtype=others["value"].dtype,
    )
    # (chunks, B, chunk_size, ...) to (B, T, ...).
    outputs = ops.moveaxis(outputs, 0, 1)
    shape = ops.shape(outputs)
    outputs = ops.reshape(outputs, (shape[0], chunks * chunk_size, *shape[3:]))
    return outputs[:, :tokens]


def _map_one_by_one(function, slices, *, shape, dtype):
    """Maps slices like `ops.map`, but strictly one after the other."""
    if keras.backend.backend() != "tensorflow":
        return ops.map(lambda slices: function(*slices), slices)
    import tensorflow as tf

    # ops.map computes ten slices at a time and holds the scores of all ten;
    # ops.scan has no gradient under XLA.
    return tf.map_fn(
        lambda slices: function(*slices),
        slices,
        fn_output_signature=tf.TensorSpec(shape, dtype),
        parallel_iterations=1,
    )


def _cast_to_float(tensor):
    # TensorFlow warns about arguments without a gradient. Positions, indices
    # and seeds below 2 ** 24 are exact in float32.
    if keras.backend.is_float_dtype(tensor.dtype):
        return tensor
    return ops.cast(tensor, "float32")


def _split(tensor, axis, chunk_size):
    """Splits an axis into chunks.

    Returns:
        `(chunks, chunk_size, ...)`, the axis moved to the front and padded
        with zeros at its end.
    """
    tensor = ops.moveaxis(tensor, axis, 0)
    tokens, *shape = ops.shape(tensor)
    padding = -tokens % chunk_size
    widths = [[0, padding]] + [[0, 0]] * len(shape)
    return ops.reshape(ops.pad(tensor, widths), (-1, chunk_size, *shape))


def _map_tensors(function, tensors):
    """Applies `function(name, tensor)` to all tensors and pairs of a dict."""
    return {
        name: keras.tree.map_structure(
            lambda tensor, name=name: function(name, tensor), value
        )
        for name, value in tensors.items()
    }


def _drop_absent(tensors):
    return {name: value for name, value in tensors.items() if value is not None}
