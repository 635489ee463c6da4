"""Google's TPU compiler, which runs on a machine without a TPU.

The compiler reports whether a program fits into the memory of a chip, and how
much each chip computes, reads, writes and sends.
"""

import dataclasses
import functools
import importlib.util
import math
import os
import re
import time

import numpy as np

from trainers.errors import ConfigError

COMPILER = ("jax", "libtpu")
"""Packages that contain the compiler."""

HOP_SECONDS = 1e-6
"""Latency of a message to the neighbouring chip."""


@dataclasses.dataclass(frozen=True)
class Chip:
    """Specification of a chip by its manufacturer.

    Attributes:
        memory: float, bytes. Size of the memory.
        flops: float, operations per second. Peak of bfloat16 products.
        bandwidth: float, bytes per second. Bandwidth of the memory.
        links: float, bytes per second. Bandwidth of all links to other chips
            together, in one direction.
        axes: int. Number of axes of the network of chips, with two links for
            each axis.
        ring: int. Smallest number of chips along an axis for which the axis is
            a ring.
        largest: int. Number of chips of the largest slice.
    """

    memory: float
    flops: float
    bandwidth: float
    links: float
    axes: int
    ring: int
    largest: int


CHIPS = {
    # https://cloud.google.com/tpu/docs/v4; links: Jouppi et al., 2023, table 4,
    # https://arxiv.org/abs/2304.01433: six of 50 GB/s.
    "v4": Chip(32e9, 275e12, 1200e9, 300e9, 3, 4, 4096),
    # https://cloud.google.com/tpu/docs/v5e
    "v5e": Chip(16e9, 197e12, 819e9, 200e9, 2, 16, 256),
    # https://cloud.google.com/tpu/docs/v5p
    "v5p": Chip(95e9, 459e12, 2765e9, 600e9, 3, 4, 6144),
    # https://cloud.google.com/tpu/docs/v6e
    "v6e": Chip(32e9, 918e12, 1638e9, 400e9, 2, 16, 256),
}
"""Chips by the name of their generation.

Google gives the bandwidth of links in both directions together.
"""


@dataclasses.dataclass(frozen=True)
class Topology:
    """A slice of a TPU, for example `v5e:2x2` or `v4:2x2x1`.

    Args:
        name: str. Chip and number of chips along each axis.

    Raises:
        ConfigError: If the name is invalid or the chip is unknown.
    """

    name: str

    def __post_init__(self):
        kind, _, shape = self.name.partition(":")
        # The compiler itself divides by a number of chips of 0.
        if (
            kind not in CHIPS
            or not re.fullmatch(r"[1-9]\d{0,4}(x[1-9]\d{0,4})*", shape)
            or len(self.shape) != self.chip.axes
            or self.chips > self.chip.largest
        ):
            known = ", ".join(
                f"{name} ({'x'.join('ABC'[: chip.axes])}, up to {chip.largest} "
                "chips)"
                for name, chip in CHIPS.items()
            )
            raise ConfigError(
                "--topology must be a chip and the shape of a slice, such as "
                f"v5e:2x2 or v4:2x2x1; known chips are {known}; got "
                f"{self.name!r}."
            )

    @property
    def chip(self):
        """Specification of the chips, a `Chip`."""
        return CHIPS[self.name.partition(":")[0]]

    @property
    def shape(self):
        """Number of chips along each axis."""
        return tuple(map(int, self.name.partition(":")[2].split("x")))

    @property
    def chips(self):
        """Number of chips of the slice."""
        return math.prod(self.shape)

    def devices(self):
        """Returns a tuple of the compiler's descriptions of the chips in order.

        Raises:
            ConfigError: If the compiler is not installed, or does not know
                the slice.
        """
        missing = [
            name for name in COMPILER if importlib.util.find_spec(name) is None
        ]
        if missing:
            raise ConfigError(
                f"compiling for TPUs needs {' and '.join(missing)}: "
                "pip install -e '.[tensorflow,tpu-compile]'."
            )
        try:
            return _devices(self.name)
        except (RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise ConfigError(
                f"the TPU compiler knows no slice {self.name}: {reason}"
            ) from None


@functools.cache
def _devices(name):
    for variable, value in {
        # There is no metadata server to query for a TPU.
        "TPU_SKIP_MDS_QUERY": "1",
        # Several processes may compile at the same time.
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
        "TPU_ACCELERATOR_TYPE": "v5litepod-1",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_WORKER_ID": "0",
        "TPU_STDERR_LOG_LEVEL": "3",
        "TPU_MIN_LOG_LEVEL": "3",
    }.items():
        os.environ.setdefault(variable, value)
    from jax.experimental import topologies

    found = topologies.get_topology_desc(topology_name=name, platform="tpu")
    # The compiler describes both cores of a v4 chip, which is one device for
    # JAX.
    return tuple(
        device
        for device in found.devices
        if getattr(device, "core_on_chip", 0) == 0
    )


def compile_program(program, topology):
    """Compiles a program for all chips of a slice.

    Args:
        program: Program of one chip in StableHLO, a str written by TensorFlow;
            or program of all chips, a `jax.stages.Lowered`.
        topology: `Topology` of the slice.

    Returns:
        Dict of numbers. `"compile_seconds"`; and for each chip: `"memory"`,
        largest number of bytes in use; `"flops"`, number of operations;
        `"bytes"`, read from and written to any memory; `"all_reduces"`, number
        of all-reduces; `"all_reduce_bytes"`, bytes that they sum;
        `"gathered_bytes"`, bytes of the results of all other operations by
        which chips exchange data.

    Raises:
        RuntimeError: If the compiler rejects the program.
    """
    start = time.monotonic()
    if isinstance(program, str):
        compiled = _compile_stablehlo(program, topology)
    else:
        compiled = program.compile().runtime_executable()
    seconds = time.monotonic() - start
    memory = compiled.get_compiled_memory_stats()
    cost = compiled.cost_analysis()
    text = compiled.hlo_modules()[0].to_string()
    reduced = find_all_reduces(text, topology.chips)
    gathered = find_results(text, "|".join(_OTHER_EXCHANGES))
    return {
        "compile_seconds": round(seconds, 1),
        "memory": memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        # Results that replace arguments in place.
        - memory.alias_size_in_bytes
        + memory.temp_size_in_bytes
        + memory.generated_code_size_in_bytes,
        "flops": cost["flops"],
        "bytes": cost["bytes accessed"],
        "all_reduces": len(reduced),
        "all_reduce_bytes": sum(reduced),
        "gathered_bytes": sum(map(_count_bytes, gathered.values())),
    }


def _compile_stablehlo(text, topology):
    devices = topology.devices()
    from jax.interpreters import mlir
    from jaxlib import xla_client

    options = xla_client.CompileOptions()
    options.num_replicas = topology.chips
    options.num_partitions = 1
    numbers = [[device.id] for device in devices]
    options.device_assignment = xla_client.DeviceAssignment.create(
        np.array(numbers)
    )
    with mlir.make_ir_context():
        try:
            module = mlir.ir.Module.parse(make_readable(text))
        except mlir.ir.MLIRError as error:
            raise RuntimeError(str(error)) from None
        return devices[0].client.compile(
            module, xla_client.DeviceList(devices), options
        )


def make_readable(stablehlo):
    """Rewrites what JAX cannot parse in TensorFlow's StableHLO.

    >>> make_readable("%1 = mhlo.copy %0 : tensor<2x3xf32>")
    '%1 = stablehlo.reshape %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>'

    TensorFlow writes a bit for each boolean constant, JAX reads a byte:

    >>> make_readable('%1 = stablehlo.constant dense<"0x05"> : tensor<1x3xi1>')
    '%1 = stablehlo.constant dense<"0x010001"> : tensor<1x3xi1>'
    """
    stablehlo = re.sub(
        r'dense<"0x([0-9A-F]+)"> : tensor<([0-9x]+)xi1>', _unpack, stablehlo
    )
    return re.sub(
        r"mhlo\.copy (%\S+) : (tensor<[^>]*>)",
        r"stablehlo.reshape \1 : (\2) -> \2",
        stablehlo,
    )


def _unpack(constant):
    """Rewrites a match of a boolean constant as one byte for each element."""
    digits, shape = constant.groups()
    count = math.prod(map(int, shape.split("x")))
    packed = np.frombuffer(bytes.fromhex(digits), np.uint8)
    if packed.size != -(-count // 8):
        return constant[0]
    unpacked = np.unpackbits(packed, count=count, bitorder="little")
    digits = unpacked.tobytes().hex().upper()
    return f'dense<"0x{digits}"> : tensor<{shape}xi1>'


def find_all_reduces(hlo, chips):
    """Lists the bytes of each all-reduce in a compiled program.

    Args:
        hlo: str. Compiled program.
        chips: int. Number of chips.

    Returns:
        List of int.

    Raises:
        RuntimeError: If an all-reduce is not over all chips.
    """
    found = find_results(hlo, "all-reduce")
    for line in found:
        groups = re.search(
            r"replica_groups=(mesh\[[^]]*\] \{.*?\}|\S+?),? ", line
        )[1]
        if not _has_all(groups, chips):
            raise RuntimeError(
                f"an all-reduce is not over all {chips} chips: {groups}."
            )
    return [_count_bytes(shapes) for shapes in found.values()]


_OTHER_EXCHANGES = (
    "all-gather",
    "all-to-all",
    "collective-permute",
    "reduce-scatter",
)


def find_results(hlo, operations):
    """Finds operations in a compiled program, and the types of their results.

    Args:
        hlo: str. Compiled program.
        operations: str. Regular expression for the names of the operations.

    Returns:
        Dict from the lines with the operations to the types.
    """
    pattern = rf"\s*(?:ROOT )?%\S+ = (.*?) (?:{operations})(?:-start)?\("
    return {
        match.string: match[1]
        for match in (re.match(pattern, line) for line in hlo.splitlines())
        if match
    }


def _has_all(groups, chips):
    """Returns whether the groups of an all-reduce are one group of all chips.

    >>> [_has_all(text, 2) for text in ("{{0,1}}", "{{0},{1}}", "[1,2]<=[2]")]
    [True, False, True]
    >>> _has_all("mesh['axis_0'=2] {'axis_0'}", 2)
    True
    """
    listed = re.fullmatch(r"\{\{([\d,]*)\}\}", groups)
    if listed:
        return len(listed[1].split(",")) == chips
    axis = re.fullmatch(r"mesh\[('\w+')=(\d+)\] \{\1\}", groups)
    if axis:
        return int(axis[2]) == chips
    # {}: all.
    return groups in ("{}", f"[1,{chips}]<=[{chips}]")


def _count_bytes(shapes):
    """Adds up the bytes of the arrays in a type such as `(f32[2,3], f32[])`.

    >>> _count_bytes("(f32[2,3]{1,0:T(8,128)}, bf16[4]{0}, s32[])")
    36
    """
    return sum(
        math.prod(map(int, filter(None, sizes.split(",")))) * int(bits) // 8
        for bits, sizes in re.findall(r"\b[a-z]+(\d+)\[([\d,]*)\]", shapes)
    )


def estimate_all_reduce_seconds(size, topology):
    """Estimates the least time of an all-reduce over all chips.

    First, each chip computes the sum of one part of the data; then each chip
    receives the sums of all parts. In both phases a chip sends `(n - 1) / n` of
    the bytes, over two links along an axis that is a ring and over one link
    along any other axis. Each phase also takes as long as a message to the
    farthest chip.

    Args:
        size: Number, bytes. Size of the data on each chip.
        topology: `Topology` of the slice.

    Returns:
        float, seconds.

    Reference: https://jax-ml.github.io/scaling-book/sharding
    """
    chip, chips = topology.chip, topology.chips
    if chips == 1 or not size:
        return 0.0
    links = hops = 0
    for length in topology.shape:
        ring = length >= chip.ring
        links += 2 if ring else min(length - 1, 1)
        hops += length // 2 if ring else length - 1
    bandwidth = chip.links * links / (2 * chip.axes)
    sent = size * (chips - 1) / chips
    return 2 * (sent / bandwidth + hops * HOP_SECONDS)


def estimate_step_seconds(row, topology):
    """Estimates the least time of a step, in seconds.

    It is the longer of the times for computation and for memory access, plus
    the time in which chips exchange data.

    Args:
        row: Dict returned by `compile_program`.
        topology: `Topology` of the slice.
    """
    chip = topology.chip
    alone = max(row["flops"] / chip.flops, row["bytes"] / chip.bandwidth)
    summed = estimate_all_reduce_seconds(row["all_reduce_bytes"], topology)
    # Gathering is one of the two phases of an all-reduce.
    gathered = estimate_all_reduce_seconds(row["gathered_bytes"], topology) / 2
    return alone + summed + gathered
