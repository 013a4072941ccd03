"""A server's routers, and what a router forwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.stats import lnet, routing
from tarazu.stats.collector import Collector
from tarazu.wire import messages
from tarazu.wire.reports import RouterLoad, RouterState

ROUTES = (
    "Routing disabled\nnet      hops priority   state router\n"
    "tcp1       -1        0      up 10.77.0.11@tcp\ntcp1       -1        0    down 10.77.0.12@tcp\n"
)
NIS = (
    "nid                      status alive refs peer  rtr   max    tx   min\n"
    "0@lo                         up     0    2    0    0     0     0     0\n"
    "10.77.0.11@tcp               up    -1    1    8    0   256   256   246\n"
    "10.77.0.11@tcp               up    -1    1    8    0   256   256   246\n"
    "10.77.0.11@tcp1              up    -1    1    8    0   256   256   246\n"
    "10.77.0.11@o2ib            down    -1    1    8    0   256   256   246\n"
)


def test_an_oss_tells_which_of_its_routers_are_up(data: Path) -> None:
    captured = (data / "oss/sys/kernel/debug/lnet/routes").read_text()
    assert routing.parse_routes(captured) == () and not routing.is_routing(captured)
    assert routing.parse_routes(ROUTES) == (
        RouterState("10.77.0.11@tcp", True, "tcp1"),
        RouterState("10.77.0.12@tcp", False, "tcp1"),
    )
    assert routing.parse_nis(NIS) == ("10.77.0.11@tcp", "10.77.0.11@tcp1")
    assert routing.parse_nis((data / "oss/sys/kernel/debug/lnet/nis").read_text()) == ("192.168.77.11@tcp",)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**62), st.integers(1, 2**50))
def test_counts_wrap_and_lengths_do_not(first: int, more: int, size: int, more_bytes: int) -> None:
    before = lnet.LnetStats(0, 0, 0, 0, 0, first, 0, 0, 0, size, 0)
    now = before._replace(route_count=(first + more) % 2**32, route_length=size + more_bytes)
    assert routing.forwarded(now, before) == (more, more_bytes)
    reset = before._replace(route_count=7, route_length=70)
    assert routing.forwarded(reset, now._replace(route_length=71)) == (7, 70)


def write(root: Path, count: int, length: int, routing_is: str = "enabled") -> None:
    directory = root / "sys/kernel/debug/lnet"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "stats").write_text(f"0 12 0 0 0 {count} 0 0 0 {length} 0\n")
    (directory / "routes").write_text(f"Routing {routing_is}\nnet      hops priority   state router\n")
    (directory / "nis").write_text(NIS)


def test_a_router_publishes_its_load_and_misses_no_targets(tmp_path: Path) -> None:
    write(tmp_path, 2**32 - 10, 1000)
    collector = Collector(tmp_path, "router1")
    first = collector.collect(0.0)
    assert first.router == RouterLoad(("10.77.0.11@tcp", "10.77.0.11@tcp1"))
    assert first.osts == () and not [name for name in first.unreadable if "obdfilter" in name]
    write(tmp_path, 20, 61_000)
    second = collector.collect(60.0)
    assert second.router and (second.router.bytes_per_s, second.router.messages_per_s) == (1000.0, 0.5)
    assert messages.decode(messages.encode(second)) == second
    write(tmp_path, 20, 61_000, "disabled")
    assert collector.collect(120.0).router is None


@pytest.mark.parametrize("garbage", ["Routing enabled\ntcp1 x\n", "up up up up up\n"])
def test_routes_that_cannot_be_read_are_said(tmp_path: Path, garbage: str) -> None:
    write(tmp_path, 0, 0)
    (tmp_path / "sys/kernel/debug/lnet/routes").write_text(garbage)
    report = Collector(tmp_path, "oss1").collect(0.0)
    assert report.routes == () and "lnet.routes" in report.unreadable
