"""What a compute node moved: by files as the kernel and Lustre show them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.parts.bursts import counters

_STATS = (
    "snapshot_time 1795166319.8 secs.nsecs\n"
    "read_bytes 3 samples [bytes] 1 9 {read}\nwrite_bytes 3 samples [bytes] 1 9 {written}\n"
)
_DEV = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier\n"
    "    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n"
    "  eth0: {eth} 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n"
    " bond0: {eth} 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n"
    "   ib0: 7000 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n"
)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_node_with_infiniband(tmp_path: Path) -> None:
    def readings(read: int, written: int, eth: int, words: int, lnet: int) -> counters.NodeCounters:
        for number, name in enumerate(("scratch-ffff1", "home-ffff2")):
            text = _STATS.format(read=read + number, written=written)
            write(tmp_path / f"sys/kernel/debug/lustre/llite/{name}/stats", text)
        write(tmp_path / "proc/net/dev", _DEV.format(eth=eth))
        port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1/counters"
        write(port / "port_rcv_data", f"{words}\n")
        write(port / "port_xmit_data", f"{words}\n")
        (tmp_path / "sys/class/net/eth0/device").mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/class/net/ib0/device/infiniband").mkdir(parents=True, exist_ok=True)
        write(tmp_path / "sys/kernel/debug/lnet/stats", f"1 2 0 4 5 6 7 {lnet} {lnet} 0 0\n")
        return counters.read(tmp_path)

    before = readings(100, 50, 1000, 10, 20)
    assert before == (201, 100, 1005 + 80, 40)
    after = readings(160, 80, 1500, 110, 120)
    assert counters.since(after, before) == (120, 60, 500 + 800 - 200)
    assert counters.since(readings(1, 80, 1500, 110, 9000), after) == (3, 0, 0), "counters began again"
    write(tmp_path / "sys/kernel/debug/lnet/stats", "no numbers\n")
    assert counters.since(counters.read(tmp_path), after)[2] is None
    write(tmp_path / "sys/kernel/debug/lustre/llite/home-ffff2/stats", "nonsense")
    assert counters.read(tmp_path)[:2] == (None, None)


def test_nothing_there(tmp_path: Path) -> None:
    assert counters.read(tmp_path) == (None, None, None, None)


@given(st.text(st.sampled_from("eth0: 129\n|-x"), max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert all(value >= 0 for value in counters.parse_devices(text).values())
    except ValueError as error:
        assert "interface" in str(error)


def test_a_short_line_is_refused() -> None:
    with pytest.raises(ValueError, match="interface"):
        counters.parse_devices("eth0: 1 2 3\n")


@pytest.mark.parametrize("number", ["18446744073709551615", "-5"])
def test_what_overflowed_is_not_counted(number: str) -> None:
    interface = "eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"
    devices = counters.parse_devices(f"{interface}\nib0: {number} 2 3 4 5 6 7 8 9\n")
    assert devices == {"eth0": 10, "ib0": None}
    assert counters.parse_devices(interface.replace(" 3 ", f" {number} ")) == {"eth0": 10}
