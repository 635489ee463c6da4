import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from trainers.cluster.waiting import unreachable, wait_for


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, -15), (signal.SIGINT, 130)]
)
def test_a_signal_ends_a_worker_that_waits(tmp_path, number, status):
    workers = f'"{free_address()}", "{free_address()}"'
    config = (
        f'{{"cluster": {{"worker": [{workers}]}}, '
        '"task": {"type": "worker", "index": 1}}'
    )
    flags = ["--encoding=RoPE", f"--workdir={tmp_path}"]
    with subprocess.Popen(
        [sys.executable, "-m", "trainers.algorithmic", *flags],
        env={**os.environ, "TF_CONFIG": config},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert "worker 1 of 2" in process.stdout.readline()
        time.sleep(2)
        process.send_signal(number)
        assert process.wait(20) == status


def test_who_is_missing_is_told(monkeypatch, capsys):
    monkeypatch.setattr("trainers.cluster.waiting.REMIND_SECONDS", 0.3)
    own, late = free_address(), free_address()
    found = []

    def come_late():
        time.sleep(2)
        with socket.create_server(("", int(late.rpartition(":")[2]))):
            found.append(unreachable(own))
            time.sleep(3)

    other = threading.Thread(target=come_late)
    other.start()
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = f"127.0.0.1:{server.getsockname()[1]}"
        wait_for([there, late], own)
    other.join()
    output = capsys.readouterr().out
    assert f"still waiting for {late}: Connection refused" in output
    assert there not in output
    assert found == [""]


def test_nobody_to_wait_for():
    wait_for([])


def test_a_port_that_is_taken():
    with socket.create_server(("", 0)) as server:
        taken = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(OSError, match="in use"):
            wait_for([free_address()], taken)


@pytest.mark.parametrize("address", ["", "host", "no such host:1", "::1:x"])
def test_what_is_no_address_is_unreachable(address):
    assert unreachable(address, seconds=1)
