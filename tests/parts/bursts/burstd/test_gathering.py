"""Reports become intervals: no byte is lost or doubled on the way, and each is near where it belongs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.parts.bursts.burstd import gathering as module
from tarazu.parts.bursts.burstd import reports as reports_module
from tarazu.parts.bursts.burstd.gathering import Gathering, Moved
from tarazu.parts.bursts.burstd.reports import Names, Reports
from tarazu.parts.bursts.traffic.traffic import Traffic
from tarazu.wire.reports import ClientRate, OssReport

NOW = 1_795_358_000.0


def totals(traffic: Traffic | None) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    if traffic is not None:
        for node, read, written in zip(traffic.node, traffic.read, traffic.written, strict=True):
            have = found.get(traffic.nodes[node], (0, 0))
            found[traffic.nodes[node]] = (have[0] + int(read), have[1] + int(written))
    return found


def moved(name: str, read: int, written: int = 0) -> Moved:
    return name, read, written


ADDED = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.integers(0, 1 << 50),
    st.floats(0, 300).map(lambda s: NOW + s),
    st.floats(0.001, 200),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(ADDED, st.floats(0, 300).map(lambda s: NOW + s)), max_size=12))
def test_no_byte_is_lost_or_doubled(steps: list[tuple[str, int, float, float] | float]) -> None:
    gathering, added, got = Gathering(10.0), dict.fromkeys("abc", 0), dict.fromkeys("abc", 0)
    rows: list[tuple[int, str]] = []
    for step in [*steps, NOW + 1e6]:
        if isinstance(step, tuple):
            name, amount, end_s, length_s = step
            gathering.add([moved(name, amount)], (end_s - length_s, end_s))
            added[name] += amount
            continue
        traffic = gathering.close(step)
        for name, (read, _) in totals(traffic).items():
            got[name] += read
        if traffic is not None:
            rows += [(int(t), traffic.nodes[n]) for t, n in zip(traffic.time_s, traffic.node, strict=True)]
    assert got == added and len(rows) == len(set(rows)) and not len(gathering)
    assert rows == sorted(rows, key=lambda row: row[0])


def test_a_long_report_is_spread_evenly() -> None:
    gathering = Gathering(10.0)
    begin = NOW // 10 * 10
    gathering.add([moved("a", 400, 40)], (begin + 5, begin + 45))
    traffic = gathering.close(begin + 50)
    assert traffic is not None
    assert traffic.read.tolist() == [50, 100, 100, 100, 50] and traffic.written.sum() == 40
    assert traffic.time_s.tolist() == [begin + 10 * i for i in range(5)]


def test_what_comes_late_is_in_the_first_open_interval() -> None:
    gathering = Gathering(10.0)
    assert gathering.close(NOW) is None
    gathering.add([moved("a", 7)], (NOW - 30, NOW - 20))
    assert gathering.late_bytes == 7
    gathering.add([moved("a", 8)], (NOW - 15, NOW + 5))
    assert gathering.late_bytes == 13
    traffic = gathering.close(NOW + 10)
    assert totals(traffic) == {"a": (15, 0)}


def test_names_beyond_the_bound_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_NODES", 2)
    gathering = Gathering(10.0)
    gathering.add([moved(name, n + 1) for n, name in enumerate("abcd")], (NOW, NOW + 1))
    assert totals(gathering.close(NOW + 20)) == {"a": (1, 0), "b": (2, 0), module.OTHERS: (7, 0)}


def report(sequence: int = 1, **own: object) -> OssReport:
    fields = {"oss": "oss1", "sent_s": NOW, "interval_s": 10.0, "incarnation": 5, **own}
    return OssReport(sequence=sequence, cpu_load=0, memory_load=0, lnet_bytes_per_s=0, osts=(), **fields)  # type: ignore[arg-type]


CLIENTS = (ClientRate("10.0.0.1@tcp", 5, 6), ClientRate("10.0.0.9@tcp", 7, 8))


def test_hosts_by_nids_and_each_report_once(tmp_path: Path) -> None:
    path = tmp_path / "nids"
    path.write_text("n[1-2] 10.0.0.[1-2]@tcp0\n")
    names = Names(str(path))
    names.look([])
    reports = Reports(Gathering(10.0), names)
    for one in (
        report(clients=CLIENTS),
        report(clients=CLIENTS, age_s=3.0),
        report(4, clients=CLIENTS[:1]),
        report(1, clients=CLIENTS[:1], incarnation=6),
        report(9, clients=CLIENTS, incarnation=6, interval_s=0.0),
    ):
        reports.take(one, NOW)
    assert (reports.taken, reports.missed, names.unknown) == (4, 9, 1)
    assert totals(reports.gathering.close(NOW + 60)) == {"n1": (18, 15), "10.0.0.9@tcp": (8, 7)}


def test_names_are_looked_up_where_there_is_no_file() -> None:
    names = Names("@tcp1")
    names.look(["localhost"])
    assert names.host("127.0.0.1@tcp1") == "localhost" and names.host("127.0.0.1@tcp") == "127.0.0.1@tcp"
    names = Names("")
    names.look(["localhost"])
    assert names.host("127.0.0.1@o2ib") == "localhost" and names.host("what is this") == "what is this"


def test_intervals_wait_for_those_that_report_and_not_for_the_silent() -> None:
    reports = Reports(Gathering(10.0), Names(""))
    assert reports.complete_s(NOW) == NOW - reports_module.SLACK_S
    reports.take(report(interval_s=60.0), NOW)
    assert reports.complete_s(NOW) == NOW - 60 - reports_module.SLACK_S
    assert reports.complete_s(NOW + 300) == NOW + 300 - reports_module.SLACK_S and len(reports) == 0


ANY = st.one_of(st.floats(), st.sampled_from([0.0, -1.0, 10.0, NOW]))
BYTES = st.integers(-(1 << 63), (1 << 64) - 1)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), ANY, ANY, ANY, BYTES, BYTES), max_size=3))
def test_no_report_ends_the_daemon(told: list[tuple[int, float, float, float, int, int]]) -> None:
    reports = Reports(Gathering(10.0), Names(""))
    for sequence, sent_s, interval_s, age_s, one, two in told:
        own = {"sent_s": sent_s, "interval_s": interval_s}
        reports.take(report(sequence, **own, age_s=age_s, clients=(ClientRate("é\0", one, two),)), NOW)
    assert reports.complete_s(NOW) <= NOW
    traffic = reports.gathering.close(NOW + 1e6)
    assert traffic is None or (traffic.written.min() >= 0 and traffic.time_s.max() <= NOW)
