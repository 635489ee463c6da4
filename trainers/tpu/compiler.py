"""Google's TPU compiler, which needs no TPU to compile for one.

A program is what every chip of a slice runs, in StableHLO. The compiler tells
whether it fits, and what it computes, moves and sends.
"""

import dataclasses
import functools
import importlib.util
import math
import os
import re
import time

from trainers.errors import ConfigError

COMPILER = ("jax", "libtpu")
"""Packages that the compiler comes in."""

HOP_SECONDS = 1e-6
"""What a message needs from a chip to its neighbour, however short it is."""


@dataclasses.dataclass(frozen=True)
class Chip:
    """What a chip can do, as its maker says.

    Attributes:
        memory: Bytes of memory.
        flops: Operations a second, of bfloat16 products.
        bandwidth: Bytes a second from and to the memory.
        links: Bytes a second over all links to other chips, in one direction.
        axes: Axes of the net of chips, each with two links.
        ring: Chips along an axis from which on it is closed to a ring.
    """

    memory: float
    flops: float
    bandwidth: float
    links: float
    axes: int
    ring: int


CHIPS = {
    # https://cloud.google.com/tpu/docs/v4; links: Jouppi et al., 2023, table 4,
    # https://arxiv.org/abs/2304.01433: six of 50 GB/s.
    "v4": Chip(32e9, 275e12, 1200e9, 300e9, 3, 4),
    # https://cloud.google.com/tpu/docs/v5e
    "v5e": Chip(16e9, 197e12, 819e9, 200e9, 2, 16),
}


@dataclasses.dataclass(frozen=True)
class Topology:
    """A slice of a TPU, as `v5e:2x2` or `v4:2x2x1`."""

    name: str

    def __post_init__(self):
        kind, _, shape = self.name.partition(":")
        if kind not in CHIPS or not re.fullmatch(r"\d+x\d+(x\d+)?", shape):
            raise ConfigError(
                "--topology is a chip and the shape of a slice, as v5e:2x2, "
                f"v5e:16x16 or v4:2x2x1; known chips are {', '.join(CHIPS)}; "
                f"got {self.name!r}."
            )

    @property
    def chip(self):
        """The `Chip`."""
        return CHIPS[self.name.partition(":")[0]]

    @property
    def shape(self):
        """Number of chips along each axis."""
        return tuple(map(int, self.name.partition(":")[2].split("x")))

    @property
    def chips(self):
        """Number of chips."""
        return math.prod(self.shape)

    def devices(self):
        """The chips as the compiler knows them.

        Raises:
            ConfigError: If there is no compiler, or no such slice.
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
        # There is no TPU here, and nobody to ask about one.
        "TPU_SKIP_MDS_QUERY": "1",
        # Several processes may compile, where none has a TPU to itself.
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
    return tuple(found.devices)


def compile_program(stablehlo, topology):
    """Compiles a program for all chips of a slice.

    Args:
        stablehlo: Text of the program of one chip, as TensorFlow writes it.
        topology: The `Topology`.

    Returns:
        A dict: `"compile_seconds"`; of each chip, `"memory"`, its largest
        number of bytes in use, `"flops"`, `"bytes"` from and to any memory,
        `"all_reduces"`, their number, and `"all_reduce_bytes"`.

    Raises:
        RuntimeError: If the compiler refuses.
    """
    devices = topology.devices()
    import numpy as np
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
        module = mlir.ir.Module.parse(make_readable(stablehlo))
        start = time.monotonic()
        compiled = devices[0].client.compile(
            module, xla_client.DeviceList(devices), options
        )
        seconds = time.monotonic() - start
    memory = compiled.get_compiled_memory_stats()
    cost = compiled.cost_analysis()
    text = compiled.hlo_modules()[0].to_string()
    reduced = all_reduces(text, topology.chips)
    return {
        "compile_seconds": round(seconds, 1),
        "memory": memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        # Updated in place.
        - memory.alias_size_in_bytes
        + memory.temp_size_in_bytes
        + memory.generated_code_size_in_bytes,
        "flops": cost["flops"],
        "bytes": cost["bytes accessed"],
        "all_reduces": len(reduced),
        "all_reduce_bytes": sum(reduced),
    }


def make_readable(stablehlo):
    """TensorFlow's StableHLO without what other parsers do not know.

    >>> make_readable("%1 = mhlo.copy %0 : tensor<2x3xf32>")
    '%1 = stablehlo.reshape %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>'
    """
    return re.sub(
        r"mhlo\.copy (%\S+) : (tensor<[^>]*>)",
        r"stablehlo.reshape \1 : (\2) -> \2",
        stablehlo,
    )


def all_reduces(hlo, chips):
    """Bytes of every sum over all chips in the text of a compiled program.

    Raises:
        RuntimeError: If one is over a part of the chips.
    """
    found = []
    for line in hlo.splitlines():
        match = re.match(
            r"\s*(?:ROOT )?%\S+ = (.*?) all-reduce(-start)?\(", line
        )
        if not match:
            continue
        groups = re.search(r"replica_groups=(\S+?),? ", line)[1]
        # One group, whose chips are told, counted, or all there are.
        one = re.fullmatch(r"\{\{([\d,]*)\}\}", groups)
        together = one and len(one[1].split(",")) == chips
        if not (together or groups in ("{}", f"[1,{chips}]<=[{chips}]")):
            raise RuntimeError(
                f"an all-reduce is not over all {chips} chips: {groups}."
            )
        found.append(_count_bytes(match[1]))
    return found


def _count_bytes(shapes):
    """Bytes of the arrays in the text of a type, as `(f32[2,3]{1,0}, f32[])`.

    >>> _count_bytes("(f32[2,3]{1,0:T(8,128)}, bf16[4]{0}, s32[])")
    36
    """
    return sum(
        math.prod(map(int, filter(None, sizes.split(",")))) * int(bits) // 8
        for bits, sizes in re.findall(r"\b[a-z]+(\d+)\[([\d,]*)\]", shapes)
    )


def estimate_all_reduce_seconds(size, topology):
    """Least seconds that a sum of `size` bytes over all chips takes.

    First every chip gets the sum of a part, then everyone gets all parts. Both
    times a chip sends the share `(n - 1) / n` of the bytes, over two links
    along an axis that is a ring and over one along another, and nothing is
    known everywhere before it has gone all the way.

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
    """Least seconds of a step: of products or memory, and of the sums."""
    chip = topology.chip
    own = max(row["flops"] / chip.flops, row["bytes"] / chip.bandwidth)
    return own + estimate_all_reduce_seconds(row["all_reduce_bytes"], topology)
