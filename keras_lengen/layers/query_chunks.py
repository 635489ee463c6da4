"""Attention in chunks of queries, in memory that grows with the length."""

import keras
from keras import ops

QUERY_AXES = {"query": 1, "inputs": 1, "positions": -1, "indices": 0, "mask": 2}
"""The axis of the queries in each of their tensors."""


def attend_in_chunks(
    attend, queries, others, *, chunk_size, layer, generator=None
):
    """Applies `attend` to one chunk of queries after the other.

    What a chunk computes is forgotten and computed again in the backward
    pass, so that no more than the scores of one chunk are ever held.

    Args:
        attend: Function of the tensors of some queries and of `others` that
            returns `(B, chunk_size, H, value_dim)`.
        queries: Dict of the tensors that have an axis of queries, by the names
            of `QUERY_AXES`; each a tensor, a pair of them, or `None`.
        others: Dict of the tensors that all chunks need, in the same way.
        chunk_size: Number of queries to a chunk.
        layer: Layer whose variables `attend` reads.
        generator: `SeedGenerator` that `attend` draws from, or `None`.

    Returns:
        `(B, T, H, value_dim)`.
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
        # Random states come from outside the chunks: what is computed twice
        # must draw the same numbers.
        sliced["seed"] = keras.random.randint(
            (chunks, 2), 0, 2**24, dtype="int32", seed=generator
        )
    # Copies are tensors: a variable of TensorFlow as an argument would get no
    # gradient in eager mode.
    values = [ops.copy(variable) for variable in variables]
    structure = (sliced, values, others)
    dtypes = [tensor.dtype for tensor in keras.tree.flatten(structure)]

    # Everything is an argument: what is not would lose its gradient.
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

    # Outside the chunks, or each of them would keep a copy.
    fixed = [*values, *map(_cast_to_float, keras.tree.flatten(others))]
    batch_size, _, *shape = others["value"].shape
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
    """`ops.map` that does not start on a slice before the last is done."""
    if keras.backend.backend() != "tensorflow":
        return ops.map(lambda slices: function(*slices), slices)
    import tensorflow as tf

    # ops.map computes ten slices at a time, whose scores are held together;
    # ops.scan has no gradient under XLA.
    return tf.map_fn(
        lambda slices: function(*slices),
        slices,
        fn_output_signature=tf.TensorSpec(shape, dtype),
        parallel_iterations=1,
    )


def _cast_to_float(tensor):
    # TensorFlow warns of arguments without a gradient. Positions, indices and
    # seeds below 2 ** 24 are exact.
    if keras.backend.is_float_dtype(tensor.dtype):
        return tensor
    return ops.cast(tensor, "float32")


def _split(tensor, axis, chunk_size):
    """To `(chunks, chunk_size, ...)`, the axis first and padded at its end."""
    tensor = ops.moveaxis(tensor, axis, 0)
    tokens, *shape = ops.shape(tensor)
    padding = -tokens % chunk_size
    widths = [[0, padding]] + [[0, 0]] * len(shape)
    return ops.reshape(ops.pad(tensor, widths), (-1, chunk_size, *shape))


def _map_tensors(function, tensors):
    """`function(name, tensor)` of every tensor of a dict, or of its pairs."""
    return {
        name: keras.tree.map_structure(
            lambda tensor, name=name: function(name, tensor), value
        )
        for name, value in tensors.items()
    }


def _drop_absent(tensors):
    return {name: value for name, value in tensors.items() if value is not None}
