"""MDTs in the view: rates, mean times, speed beside peers; failover, silence, resets, absurd values."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu.config import Settings
from tarazu.ost_state import Verdict
from tarazu.part import MdsdFacts, Reported
from tarazu.parts.mdt import speed
from tarazu.parts.mdt.mdsd import InMdsdMdt
from tarazu.parts.mdt.messages import (
    MAX_MDTS,
    MAX_OPERATIONS,
    MdtJob,
    MdtOperation,
    MdtReport,
    MdtReports,
)
from tarazu.parts.mdt.model import Mdt
from tarazu.parts.mdt.ossd import parse
from tarazu.parts.mdt.speed import Did, compare
from tarazu.stats.view import ViewBuilder
from tarazu.wire.reports import OssReport
from tests.parts.mdt.test_ossd import dne

GB = 10**9
Rows = dict[str, tuple[int, int]]


def mdt(index: int, rows: Rows | None = None, **fields: Any) -> MdtReport:
    operations = tuple(MdtOperation(name, *of) for name, of in (rows or {}).items())
    values = {"total_bytes": GB, "avail_bytes": GB // 2, "files_total": 1000, "files_free": 900, **fields}
    return MdtReport("lustre", index, operations=operations, **values)


class Servers:
    """Reports of servers whose counters go on, `interval_s` apart."""

    def __init__(self, interval_s: float = 60.0) -> None:
        self.views = ViewBuilder(180)
        self.part = InMdsdMdt(MdsdFacts(Settings(), lambda _: None, lambda: None, str, lambda _: 0))
        self.now, self._interval_s = 0.0, interval_s
        self._sequences: dict[str, int] = {}

    def tell(self, server: str, *mdts: MdtReport, later: bool = True, unread: bool = False) -> bool:
        self._sequences[server] = self._sequences.get(server, 0) + 1
        report = OssReport(
            server, self._sequences[server], 0.0, self._interval_s, 0.0, 0.0, 0.0, (), incarnation=7
        )
        taken = self.take(report, self.now, MdtReports(mdts, unread))
        self.now += self._interval_s if later else 0.0
        return taken

    def take(self, report: OssReport, now: float, said: MdtReports | None = None) -> bool:
        """As mdsd does. `said`: instead of what the report has."""
        if (taken := self.views.update(report, now)) is not None and taken.is_new:
            of = Reported(report.oss, taken.received_s, taken.seconds, lambda _: True)
            self.part.reported(said or msgspec.msgpack.decode(report.parts["mdt"], type=MdtReports), of)
        return taken is not None

    def mdts(self) -> tuple[Mdt, ...]:
        return self.part.view("lustre", self.now)


def test_rates_and_mean_times_of_the_captured_counters(data: Path) -> None:
    servers = Servers()
    rows = {of.name: (of.count, of.usecs) for of in parse(dne(data, "lustre-MDT0000")).operations}
    servers.tell("mds1", mdt(0, rows))
    (before,) = servers.mdts()
    assert (before.server, before.operations_per_s, before.create_s) == ("mds1", 0.0, None)
    assert (before.total_bytes, before.avail_bytes, before.files_total, before.files_free) == (
        GB,
        GB // 2,
        1000,
        900,
    )
    more = rows | {"mknod": (2083 + 600, 8196568 + 1_200_000), "mkdir": (171 + 60, 1082277 + 780_000)}
    servers.tell("mds1", mdt(0, more, jobs=(MdtJob("4711", 120),)))
    (now,) = servers.mdts()
    assert (now.operations_per_s, now.creates_per_s) == (11.0, 11.0)
    assert now.create_s == pytest.approx(0.003)
    assert now.relative_speed is None and now.speed_why == speed.SINGLE
    details = servers.part.details("lustre", servers.now)[0]
    assert details.operations == {"mknod": (10.0, 0.002), "mkdir": (1.0, 0.013)}
    assert details.jobs == (("4711", 2.0),)


def counted(mean_usecs: int, rounds: int, each: int = 600) -> Rows:
    """`rounds` intervals of three kinds of operations."""
    count = each * rounds
    return {
        "open": (count, count * mean_usecs),
        "mknod": (count, 2 * count * mean_usecs),
        "close": (count, count * mean_usecs // 2),
    }


def test_one_slow_mdt_of_four_is_seen() -> None:
    servers = Servers()
    for rounds in range(1, 5):
        for server, indices in (("mds1", (0, 1)), ("mds2", (2, 3))):
            mdts = [
                mdt(i, counted(4000 if i == 2 else 1000, rounds, 150 if i == 2 else 600)) for i in indices
            ]
            servers.tell(server, *mdts, later=server == "mds2")
    speeds = [m.relative_speed for m in servers.mdts()]
    assert speeds[2] == pytest.approx(0.25)
    assert [speeds[i] for i in (0, 1, 3)] == [pytest.approx(1.0)] * 3
    slow = servers.mdts()[2]
    assert slow.sick and slow.judged.verdict is Verdict.SICK and "0.25 of its peers' speed" in slow.judged.why
    assert "450 operations beside 3 MDTs at like load" in slow.speed_why


def test_one_interval_decides_nothing_and_one_stall_changes_nothing() -> None:
    servers = Servers()
    totals = [0, 0]
    seen = []
    for round_ in range(8):
        times = (1000, 50_000 if round_ == 5 else 1000)
        totals = [total + 600 * each for total, each in zip(totals, times, strict=True)]
        rows = [{"open": (600 * (round_ + 1), total)} for total in totals]
        servers.tell("mds1", *(mdt(i, of) for i, of in enumerate(rows)))
        seen.append(servers.mdts()[1].relative_speed)
    assert seen[:2] == [None, None] and servers.mdts()[1].speed_why.startswith("the median of")
    assert seen[2:] == [pytest.approx(1.0)] * 6


def test_an_idle_mdt_has_no_speed_and_keeps_for_a_while_what_was_seen() -> None:
    servers = Servers()
    for rounds in (1, 2, 3, 4):
        servers.tell("mds1", mdt(0, counted(1000, rounds)), mdt(1, counted(3000, rounds)), mdt(2))
    assert servers.mdts()[2].relative_speed is None and servers.mdts()[2].speed_why == speed.IDLE
    assert servers.mdts()[1].relative_speed == pytest.approx(1 / 3)
    for _ in range(28):
        servers.tell("mds1", mdt(0, counted(1000, 4)), mdt(1, counted(3000, 4)), mdt(2))
    assert servers.mdts()[1].relative_speed == pytest.approx(1 / 3)
    for _ in range(4):
        servers.tell("mds1", mdt(0, counted(1000, 4)), mdt(1, counted(3000, 4)), mdt(2))
    assert servers.mdts()[1].relative_speed is None and servers.mdts()[1].speed_why == speed.IDLE


def did(rows: Rows, seconds: float = 60.0) -> Did:
    return speed.did(0.0, seconds, rows)


def test_speed_is_that_beside_mdts_at_like_load() -> None:
    busy = did({"open": (60_000, 60_000 * 9000)})
    easy = did({"open": (600, 600 * 1000)})
    servers = {0: "a", 1: "b"}
    found = compare(0, {0: busy, 1: easy}, servers)
    assert (found.share, found.why) == (None, speed.UNLIKE), "its load may be why"
    slow = did({"open": (600, 600 * 9000)})
    assert compare(0, {0: slow, 1: easy}, servers).share == pytest.approx(1 / 9), "as many, and slower"
    one, other = did({"open": (6000, 6000 * 100)}), did({"open": (600, 600 * 1000)})
    assert compare(1, {0: one, 1: other}, servers).share == pytest.approx(0.1), "slower, so it makes fewer"


def test_each_operation_is_compared_with_the_same_one() -> None:
    creates, looks = did({"mknod": (600, 600_000), "getattr": (60, 600)}), did({"getattr": (900, 9000)})
    found = compare(0, {0: creates, 1: looks}, {0: "a", 1: "b"})
    assert found.share == pytest.approx(1.0), "what only one of them does is no difference"
    remote = did({"mkdir": (600, 600 * 57_000), "getattr": (900, 9000)})
    assert compare(0, {0: remote, 1: looks}, {0: "a", 1: "b"}).share == pytest.approx(1.0)


@pytest.mark.parametrize("rows", [{}, {"open": (49, 49_000)}, {"mkdir": (9000, 9_000_000)}])
def test_too_little_to_compare(rows: Rows) -> None:
    assert compare(0, {0: did(rows), 1: did({"open": (600, 600)})}, {}).why == speed.IDLE


def test_a_server_that_times_no_operations() -> None:
    assert compare(0, {0: did({"open": (600, 0)}), 1: did({"open": (600, 0)})}, {}).why == speed.UNTIMED


def test_failover_counts_from_the_new_servers_beginning() -> None:
    servers = Servers()
    for rounds in (1, 2, 3, 4):
        servers.tell("mds1", mdt(0, counted(1000, rounds)), mdt(1, counted(4000, rounds)))
    assert servers.mdts()[1].relative_speed == pytest.approx(0.25)
    servers.tell("mds2", mdt(1, counted(1000, 1)))
    moved = servers.mdts()[1]
    assert (moved.server, moved.operations_per_s, moved.relative_speed) == ("mds2", 0.0, None)
    servers.tell("mds2", mdt(1, counted(1000, 2)))
    assert servers.mdts()[1].operations_per_s == pytest.approx(30.0)
    servers.tell("mds1", mdt(0, counted(1000, 5)), later=False)
    assert [m.server for m in servers.mdts()] == ["mds1", "mds2"]


def test_counters_that_began_anew_are_no_rate() -> None:
    servers = Servers()
    servers.tell("mds1", mdt(0, counted(1000, 5), counters_start_s=1.0))
    servers.tell("mds1", mdt(0, counted(1000, 1), counters_start_s=2.0))
    assert servers.mdts()[0].operations_per_s == 0.0
    servers.tell("mds1", mdt(0, counted(1000, 2), counters_start_s=2.0))
    assert servers.mdts()[0].operations_per_s == pytest.approx(30.0)
    servers.tell("mds1", mdt(0, {"open": (2, 2)}, counters_start_s=2.0))
    assert servers.mdts()[0].operations_per_s == 0.0, "fewer than before, and rows that are gone"


def test_rows_that_could_not_be_read_are_no_reset() -> None:
    servers = Servers()
    servers.tell("mds1", mdt(0, counted(1000, 1)))
    servers.tell("mds1", mdt(0), unread=True)
    servers.tell("mds1", mdt(0, counted(1000, 3)))
    assert servers.mdts()[0].operations_per_s == 0.0, "from nothing to all of it is no rate"
    servers.tell("mds1", mdt(0, counted(1000, 4)))
    assert servers.mdts()[0].operations_per_s == pytest.approx(30.0)


def test_a_silent_server_leaves_its_mdts_stale() -> None:
    servers = Servers()
    for rounds in (1, 2):
        servers.tell("mds1", mdt(0, counted(1000, rounds)))
    assert servers.mdts()[0].usable and servers.mdts()[0].operations_per_s > 0
    servers.now += 181.0
    (stale,) = servers.mdts()
    assert stale.stale and not stale.usable and stale.judged.verdict is Verdict.SILENT
    assert (stale.operations_per_s, stale.create_s, stale.relative_speed) == (0.0, None, None)
    assert servers.part.details("lustre", servers.now)[0].operations is None
    servers.part.excuse(200.0)
    assert not servers.mdts()[0].stale, "mdsd itself had not listened"


@pytest.mark.parametrize(
    "fields",
    [
        {"total_bytes": 0},
        {"avail_bytes": GB + 1},
        {"avail_bytes": -1},
        {"files_free": 1001},
        {"files_free": -1},
        {"counters_start_s": math.nan},
        {"rows": {"open": (-1, 0)}},
        {"rows": {"open": (1, -1)}},
        {"jobs": (MdtJob("j", -1),)},
    ],
)
def test_an_mdt_with_impossible_values_is_left_out_and_named(fields: dict[str, Any]) -> None:
    servers = Servers()
    assert servers.tell("mds1", mdt(0), mdt(1, **fields))
    assert [m.index for m in servers.mdts()] == [0]
    assert servers.part.impossible["mds1"] == ("lustre-MDT0001",)
    servers.tell("mds1", mdt(0), mdt(1))
    assert [m.index for m in servers.mdts()] == [0, 1] and not servers.part.impossible


@pytest.mark.parametrize("index", [-1, 1 << 16])
def test_an_index_that_cannot_be(index: int) -> None:
    servers = Servers()
    servers.tell("mds1", mdt(index))
    assert servers.mdts() == ()


def test_more_mdts_than_a_file_system_has() -> None:
    servers = Servers()
    for first in range(0, 3 * MAX_MDTS, MAX_MDTS):
        servers.tell("mds1", *(mdt(first + i) for i in range(MAX_MDTS)), later=False)
    assert len(servers.mdts()) == MAX_MDTS
    assert servers.tell("mds1", mdt(0, files_free=7)) and servers.mdts()[0].files_free == 7


@pytest.mark.parametrize("seconds", [5e-324, 1e-9, 1e300])
def test_absurd_counts_and_intervals_spoil_nothing(seconds: float) -> None:
    servers = Servers(seconds)
    most = 2**63 - 1
    for count in (0, most):
        rows = dict.fromkeys(("open", "mknod", "close"), (count, count))
        servers.tell("mds1", mdt(0, rows), mdt(1, rows), later=False)
    for m in servers.mdts():
        assert math.isfinite(m.operations_per_s) and math.isfinite(m.creates_per_s)
        assert m.relative_speed is None or math.isfinite(m.relative_speed)


def test_the_largest_report_does_not_hold_mdsd_up() -> None:
    servers = Servers()
    others = [f"x{number}" for number in range(MAX_OPERATIONS - len(speed.COMPARED))]
    began = time.process_time()
    for round_ in range(1, 4):
        count = 1000 * round_
        rows = dict.fromkeys((*speed.COMPARED, *others), (count, count * 100))
        servers.tell("mds1", *(mdt(index, rows) for index in range(MAX_MDTS)))
    servers.mdts()
    assert time.process_time() - began < 3.0, "0.1 s each, measured"


def test_a_full_one_takes_no_directories() -> None:
    servers = Servers()
    servers.tell("mds1", mdt(0, files_free=0), mdt(1, avail_bytes=0), mdt(2, files_free=30))
    full, no_space, nearly = servers.mdts()
    assert not full.usable and not no_space.usable and nearly.usable
    assert [m.judged.verdict for m in (full, no_space, nearly)] == ["full", "full", "nearly-full"]


@pytest.mark.parametrize(("field", "why"), [("no_create", "no_create"), ("readonly", "read-only")])
def test_a_closed_one_takes_none_either(field: str, why: str) -> None:
    servers = Servers()
    servers.tell("mds1", mdt(0, **{field: True}))
    (closed,) = servers.mdts()
    assert not closed.usable and (closed.judged.verdict, closed.judged.why) == (Verdict.REFUSING, why)
