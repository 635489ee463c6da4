"""A single device of JAX, for programs that need no TensorFlow."""

import contextlib

import jax

from trainers.devices.strategy import Strategy


class OneDevice(Strategy):
    """The default device of JAX in a process of its own."""

    num_replicas = 1
    several_workers = False
    is_chief = True

    @property
    def devices(self):
        return (f"{self.kind} ({jax.devices()[0]})",)

    @property
    def kind(self):
        """Kind of the device, such as `cpu` or `NVIDIA H100`."""
        return jax.devices()[0].device_kind

    def scope(self):
        return contextlib.nullcontext()

    def from_chief(self, values):
        return values

    def on_any_worker(self, flag):
        return flag

    def means_lost_worker(self, error):
        return False
