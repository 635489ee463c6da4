"""Waits for other workers, answers signals and says who is missing.

TensorFlow waits for all workers, too, but handles neither signals nor other
threads while it does.
"""

import contextlib
import socket
import time

REMIND_SECONDS = 60
"""Seconds between two lists of missing workers."""


def wait_for(workers, address=None):
    """Returns when all other workers have been reached.

    Args:
        workers: Addresses `host:port` of the other workers.
        address: Address of this worker, or `None`. While it waits, it listens
            there, so that the other workers can reach it.

    Raises:
        OSError: If its port is taken.
    """
    missing, remind = list(workers), time.monotonic() + REMIND_SECONDS
    with _listening(address):
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
    """Returns why nobody answers at `host:port`, or an empty string."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), seconds):
            return ""
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)


def _listening(address):
    if address is None:
        return contextlib.nullcontext()
    return socket.create_server(("", int(address.rpartition(":")[2])))
