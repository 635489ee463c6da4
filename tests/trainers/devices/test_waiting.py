import contextlib
import socket
import threading

import pytest

from trainers.devices.waiting import unreachable, wait_for


@contextlib.contextmanager
def reserved_address():
    """An address of this process alone, at which nobody answers."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_who_is_missing_is_told(monkeypatch, capsys):
    waited, over = threading.Event(), threading.Event()
    monkeypatch.setattr("trainers.devices.waiting.REMIND_SECONDS", 0)
    monkeypatch.setattr(
        "trainers.devices.waiting.time.sleep", lambda seconds: waited.set()
    )
    found = []

    def come_late():
        waited.wait()
        # First, because the other side closes its port when it need not wait.
        found.append(unreachable(own))
        with socket.create_server(("", int(late.rpartition(":")[2]))):
            over.wait()

    with reserved_address() as own, reserved_address() as late:
        other = threading.Thread(target=come_late)
        other.start()
        with socket.create_server(("127.0.0.1", 0)) as server:
            there = f"127.0.0.1:{server.getsockname()[1]}"
            wait_for([there, late], own)
        over.set()
        other.join()
    output = capsys.readouterr().out
    assert f"still waiting for {late}: Connection refused" in output
    assert there not in output
    assert found == [""]


def test_a_port_that_is_taken():
    with socket.create_server(("", 0)) as server, reserved_address() as other:
        taken = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(OSError, match="in use"):
            wait_for([other], taken)


@pytest.mark.parametrize("address", ["", "no such host:1", "::1:x"])
def test_what_is_no_address_is_unreachable(address):
    assert unreachable(address, seconds=1)
