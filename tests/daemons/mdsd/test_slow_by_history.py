"""A real mdsd that learns what is usual for 12 OSTs, is started again, and tells sickness from load.

Servers report every minute; each report says how long ago it was made, so that hours pass in seconds.
"""

from __future__ import annotations

import signal
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tarazu.wire.messages import ViewRequest
from tarazu.wire.reports import OssReport
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tests.daemons.conftest import PATIENCE_S, Site
from tests.daemons.listening import until
from tests.stats.test_judging import Ost

OSTS, PER_SERVER, MINUTE_S = 12, 3, 60.0
ALL_HOURS = 6
"""That may be told of afterwards."""


class Servers:
    """Four, with what their OSTs' counters say."""

    def __init__(self, site: Site) -> None:
        self.site, self.osts = site, [Ost(i) for i in range(OSTS)]
        self.transport = ZmqTransport(curve_for("oss", site.keys))
        self.publisher = self.transport.publisher(site.statistics)
        self.client = site.client()
        self.sequence, self.begun_s = 0, time.monotonic()
        self.minute = 0

    def report(self) -> None:
        self.minute += 1
        self.sequence += 1
        # The first report is of `ALL_HOURS` before the test began.
        age_s = ALL_HOURS * 3600 - self.minute * MINUTE_S + time.monotonic() - self.begun_s
        for first in range(0, OSTS, PER_SERVER):
            osts = tuple(ost.report() for ost in self.osts[first : first + PER_SERVER])
            report = OssReport(
                f"oss{first // PER_SERVER}",
                self.sequence,
                0.0,
                MINUTE_S,
                *(0.0, 0.0, 0.0),
                osts,
                incarnation=1,
                age_s=age_s,
            )
            self.publisher.publish(report)
        self.look()

    def look(self) -> None:
        self.client.request(ViewRequest(uuid.uuid4().hex, "lustre"), PATIENCE_S)

    def received(self) -> int:
        return int(self.site.status()["statistics"]["received"])

    def minutes(
        self, count: int, sick: Iterable[int] = (), deep: Iterable[int] = (), one_by_one: bool = True
    ) -> dict[int, dict[str, Any]]:
        """What is said of each OST after so long."""
        for ost in self.osts:
            ost.held = 10.0 if ost.index in sick else 1.0
        for _ in range(count):
            for ost in self.osts:
                ost.io(*((600, 4 << 20, 32) if ost.index in deep else (40,)))
            before = self.received() if one_by_one else 0
            self.report()
            if one_by_one:
                until(lambda: self.received() >= before + OSTS // PER_SERVER)  # noqa: B023
                self.look()
        osts = self.site.status()["file_systems"]["lustre"]["osts"]
        return {ost["index"]: ost for ost in osts}


def sick(said: dict[int, dict[str, Any]]) -> set[int]:
    return {index for index, ost in said.items() if ost["state"]["verdict"] in ("sick", "slow")}


@pytest.fixture
def servers(site: Site) -> Iterator[Servers]:
    site.configure(stale_after_s=ALL_HOURS * 3600.0)
    servers = Servers(site)
    yield servers
    servers.transport.close()


def test_two_of_twelve_a_quarter_after_a_restart_and_neither_load_nor_all_at_once(
    site: Site, servers: Servers
) -> None:
    mdsd = site.mdsd()
    site.wait_status(lambda s: s["daemon"] == "mdsd")
    deadline = time.monotonic() + PATIENCE_S
    while "lustre" not in site.status()["file_systems"] and time.monotonic() < deadline:
        servers.report()
    assert sick(servers.minutes(150, one_by_one=False)) == set()
    assert sick(servers.minutes(1)) == set()

    said = servers.minutes(4, sick={1, 7})
    assert sick(said) == {1, 7}
    assert said[1]["own_relative"] == pytest.approx(0.1, rel=0.4) and said[1]["slow_score"] == 1.0
    assert "than its own last" in said[1]["state"]["why"] and "than its peers" in said[1]["state"]["why"]
    assert sick(servers.minutes(4)) == set()

    mdsd.send_signal(signal.SIGTERM)
    assert mdsd.wait(PATIENCE_S) == 0
    assert (site.state / "usual.msgpack").stat().st_size < OSTS * 2048
    again: subprocess.Popen[str] = site.mdsd()
    site.wait_status(lambda s: s["daemon"] == "mdsd")
    assert sick(servers.minutes(3, deep=range(4))) == set()
    quarter = {0, 1, 3, 4}
    said = servers.minutes(4, sick=quarter)
    assert sick(said) == quarter, "on two servers: beside their peers alone they pass for other hardware"
    assert sick(servers.minutes(4)) == set()

    assert sick(servers.minutes(8, sick=range(OSTS))) == set()
    known = site.status()["file_systems"]["lustre"]
    assert known["common_cause"].startswith("most OSTs are ") and known["common_relative"] < 0.3
    until(lambda: "lustre: most OSTs are" in site.log("mdsd"))
    assert again.poll() is None
