"""Controllers in Python outside of the simulation."""

import os
import socket
import threading
from pathlib import Path

import narrows
import pytest
from gentle import Gentle


def test_a_controller_in_python_drives_real_sockets():
    """Protects the same class over UDP: it is called, and its window limits as in simulation."""
    acks = []

    class Counts:
        cwnd = 10.0

        def on_ack(self, ack):
            acks.append(ack.forward_delay)

    seen = narrows.speed(Counts, "10Mbit/s,20ms", seconds=2)
    simulated = len(acks)
    assert seen.protocol == "rrtp+Counts"
    # Ten packets per round trip of 41 ms or more: below 3 Mbit/s on a link of 10 Mbit/s.
    assert 0.5e6 < seen.real.goodput_bps < 3e6
    assert 0.5e6 < seen.simulated.goodput_bps < 3e6
    assert seen.real.rtt_s >= 0.04
    assert simulated > 100
    assert acks[-1] is not None


def test_what_raises_over_sockets_is_raised():
    """Protects exceptions from the endpoint's thread: they are raised at once, not after ten minutes."""
    calls = []

    class Breaks:
        cwnd = 10.0

        def on_start(self, start):
            calls.append(self)

        def on_ack(self, ack):
            # The first object is inspected, the second simulated.
            if len(calls) > 2 and ack.round > 2:
                raise RuntimeError("enough")

    with pytest.raises(
        narrows.ControllerError, match=r"'Breaks' raised in on_ack at \d.*: enough"
    ) as raised:
        narrows.speed(Breaks, "10Mbit/s,20ms", seconds=600)
    assert isinstance(raised.value.__cause__, RuntimeError)
    assert "simulated" not in str(raised.value)


def test_wrong_arguments_are_refused():
    """Protects the error of one line."""
    with pytest.raises(narrows.SpecError, match=r"from 0\.1 to 3600"):
        narrows.speed("rrtp", seconds=0)
    with pytest.raises(narrows.SpecError, match="did you mean 'rrtp'"):
        narrows.speed("rrpt", seconds=1)
    with (
        pytest.raises(narrows.SpecError, match="the kernel has 'Gentle'"),
        narrows.in_kernel("rrtp+Gentle"),
    ):
        pass


def in_kernel(protocol):
    """As narrows.in_kernel; skips the test, with the reason, if the system lacks support."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("controllers in the kernel need Linux and root")
    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("this kernel does not describe its types (/sys/kernel/btf/vmlinux is missing)")
    return narrows.in_kernel(protocol)


def transfer(name, megabytes=4):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        served, _ = listener.accept()
        with client, served:
            sender = threading.Thread(target=client.sendall, args=(bytes(megabytes << 20),))
            sender.start()
            received = 0
            while received < megabytes << 20:
                received += len(served.recv(1 << 16))
            sender.join()
            return received


def transfer_until(name, is_enough):
    """Repeats transfers, up to 100: one takes milliseconds, in which a busy machine may not run the class."""
    for _ in range(100):
        assert transfer(name) == 4 << 20
        if is_enough():
            break


def test_a_controller_in_python_drives_the_kernels_tcp():
    """Protects use in the kernel: a connection calls the class at its acknowledgements."""
    acks = []

    class Asked(Gentle):
        def on_ack(self, ack):
            acks.append(ack.rtt)
            super().on_ack(ack)

    with in_kernel(Asked) as name:
        transfer_until(name, lambda: len(acks) > 10)
    assert len(acks) > 10
    assert all(0 <= rtt < 1 for rtt in acks)


def test_what_raises_in_the_kernels_agent_is_raised_at_the_end():
    """Protects a connection from its controller's error, which is raised at the end."""
    acks = []

    class Breaks(Gentle):
        def on_ack(self, ack):
            acks.append(ack.rtt)
            raise RuntimeError("enough")

    with (
        pytest.raises(narrows.ControllerError, match="'Breaks' raised in on_ack"),
        in_kernel(Breaks) as name,
    ):
        transfer_until(name, lambda: acks)
