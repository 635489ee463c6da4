"""Waiting for other workers, so that signals and people get an answer.

TensorFlow, too, waits until all workers are there, but neither a signal nor
another thread is heard meanwhile.
"""

import contextlib
import socket
import time

REMIND_SECONDS = 60
"""Time between two lists of who is missing."""


def wait_for(others, own=None):
    """Returns when all others have been reached.

    Args:
        others: Addresses as `host:port`.
        own: The address at which this process will be reached, and is by the
            others that wait like this.

    Raises:
        OSError: If the port is taken.
    """
    missing, remind = list(others), time.monotonic() + REMIND_SECONDS
    with _listening(own):
        while True:
            reasons = {address: unreachable(address) for address in missing}
            missing = [address for address in missing if reasons[address]]
            if not missing:
                return
            if time.monotonic() >= remind:
                for address in missing:
                    print(
                        f"still waiting for {address}: {reasons[address]}",
                        flush=True,
                    )
                remind = time.monotonic() + REMIND_SECONDS
            time.sleep(0.5)


def unreachable(address, seconds=5):
    """Why nobody answers at `host:port`, or an empty string."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), seconds):
            return ""
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)


def _listening(own):
    if own is None:
        return contextlib.nullcontext()
    return socket.create_server(("", int(own.rpartition(":")[2])))
