"""Fused attention on one device or several, which share a batch."""

from typing import TYPE_CHECKING, Any

import keras

from keras_lengen.types import Tensor

if TYPE_CHECKING:
    from keras_lengen.layers.attention.fused_plan import Plan

BATCH_AXES = ("batch", "data")
"""Names of the axis of a mesh of devices along which a batch is divided, if
there is no `keras.distribution`."""


def find_device_obstacle(batch: int, *, any_kind: bool = False) -> str | None:
    """Finds out why the devices cannot compute fused attention.

    Args:
        batch: int, number of examples of all devices.
        any_kind: bool, whether the devices need not be TPUs.

    Returns:
        str, the reason; or `None` if they can.
    """
    import jax

    mesh = _find_mesh()
    if mesh is None:
        kind, devices = jax.default_backend(), jax.device_count()
    else:
        kind, devices = _find_kind(mesh), 1
    if not any_kind and "tpu" not in kind.lower():
        return "its kernels need a TPU"
    if devices > 1 and not any_kind:
        return (
            f"the batch may be divided among {devices} devices, but there is "
            "no keras.distribution, nor a mesh of jax.set_mesh"
        )
    return None if mesh is None else _find_mesh_obstacle(mesh, batch)


def _find_mesh_obstacle(mesh: Any, batch: int) -> str | None:
    axes = _find_axes(mesh)
    name = _find_batch_axis(mesh)
    others = [axis for axis in axes if axis != name]
    if others:
        return f"devices are divided along the axes {', '.join(others)} too"
    if name in axes and batch % axes[name]:
        return f"{batch} examples do not divide among {axes[name]} devices"
    return None


def attend_on_devices(
    plan: "Plan",
    query: Tensor,
    key: Tensor,
    value: Tensor,
    operands: dict[str, Tensor | None],
) -> tuple[Tensor, Tensor]:
    """Computes attention, on each device for its share of the batch.

    Args:
        plan: `Plan`.
        query: Queries `(B, T, H, D)`.
        key: Keys `(B, S, key heads, D)`.
        value: Values `(B, S, key heads, value width)`.
        operands: Dict of the other arguments of `pallas_kernels.attend`.

    Returns:
        Weighted sums of the values `(B, T, H, value width)`, and logarithms
        of the sums of the exponentials of the scores, float32 `(B, H, T)`.
    """
    import jax

    from keras_lengen.layers.attention.pallas_kernels import attend

    spec: Any = jax.sharding.PartitionSpec

    mesh = _find_mesh()
    name = None if mesh is None else _find_batch_axis(mesh)
    if mesh is None or name not in _find_axes(mesh):
        return attend(plan, query, key, value, **operands)
    batch = query.shape[0]
    share = batch // mesh.shape[name]

    def attend_to_share(tensors: dict[str, Any]) -> Any:
        if tensors.get("seed") is not None:
            first = share * jax.lax.axis_index(name)
            tensors["seed"] = tensors["seed"].at[2].add(first)
        return attend(plan, **tensors)

    def place(operand: str, tensor: Any) -> Any:
        whole = operand in ("parameters", "seed") or tensor.shape[0] != batch
        return spec() if whole else spec(name)

    tensors = {"query": query, "key": key, "value": value, **operands}
    tensors = {n: each for n, each in tensors.items() if each is not None}
    return jax.shard_map(
        attend_to_share,
        mesh=mesh,
        in_specs=({n: place(n, each) for n, each in tensors.items()},),
        out_specs=spec(name),
        check_vma=False,
    )(tensors)


def _find_mesh() -> Any:
    """Finds the mesh of the devices that share the batch, or `None`."""
    import jax

    mesh: Any = jax.sharding.get_abstract_mesh()
    if not mesh.empty:
        return mesh
    distribution = keras.distribution.distribution()
    if distribution is None:
        return None
    return distribution.device_mesh.backend_mesh


def _find_kind(mesh: Any) -> str:
    """Finds the kind of the devices of a mesh."""
    device = getattr(mesh, "abstract_device", None)
    if device is None and hasattr(mesh, "devices"):
        device = mesh.devices.flat[0]
    return getattr(device, "device_kind", None) or ""


def _find_axes(mesh: Any) -> dict[str, int]:
    """Finds the axes along which there are several devices, and how many."""
    import jax

    # Inside of a `jax.shard_map`, tensors are those of one device.
    manual = jax.sharding.AxisType.Manual
    return {
        name: size
        for (name, size), kind in zip(
            mesh.shape.items(), mesh.axis_types, strict=True
        )
        if size > 1 and kind != manual
    }


def _find_batch_axis(mesh: Any) -> str:
    """Finds the name of the axis along which a batch is divided."""
    distribution = keras.distribution.distribution()
    names: Any = getattr(distribution, "batch_dim_name", None), *BATCH_AXES
    known: list[str] = [name for name in names if name in mesh.shape]
    return (known or list(mesh.shape))[0]
