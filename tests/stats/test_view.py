"""The system view: merging, staleness, failover, pools, LNet load; and the gate."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from tarazu.stats import view as view_module
from tarazu.stats.collector import Collector
from tarazu.stats.gate import Gate
from tarazu.stats.view import LNET_FLOOR_BYTES_PER_S, ViewBuilder
from tarazu.wire.reports import IoCounters, OssReport, OstReport

GB = 10**9


def ost(index: int, fs_name: str = "lustre", **fields: Any) -> OstReport:
    return OstReport(fs_name, index, 10 * GB, 8 * GB, 7 * GB, **fields)


def report(oss: str, *osts: OstReport, **fields: Any) -> OssReport:
    values = {"cpu_load": 0.0, "memory_load": 0.0, "lnet_bytes_per_s": 0.0, **fields}
    return OssReport(oss=oss, sequence=1, sent_s=0.0, interval_s=60.0, osts=osts, **values)


def test_reports_of_several_servers_make_one_view() -> None:
    views = ViewBuilder(180)
    views.update(report("oss2", ost(5), ost(1, degraded=True), cpu_load=0.4), 100.0)
    views.update(report("oss1", ost(0), ost(0, "scratch"), memory_load=0.3), 110.0)
    view = views.view("lustre", 120.0, {1: 42})
    assert [(o.index, o.oss) for o in view.osts] == [(0, "oss1"), (1, "oss2"), (5, "oss2")]
    assert (view.fs_name, view.taken_s) == ("lustre", 120.0)
    assert view.osts[1].promised_bytes == 42 and view.osts[1].degraded and not view.osts[0].degraded
    assert (view.osts[0].total_bytes, view.osts[0].free_bytes, view.osts[0].avail_bytes) == (
        10 * GB,
        8 * GB,
        7 * GB,
    )
    assert [(o.name, o.load) for o in view.osses] == [("oss1", 0.3), ("oss2", 0.4)]
    assert views.fs_names() == ["lustre", "scratch"]
    assert views.view("nowhere", 120.0).osts == ()
    assert views.age_s("lustre", 120.0) == 20.0


def test_a_silent_server_goes_stale_and_comes_back() -> None:
    views = ViewBuilder(180)
    views.update(report("oss1", ost(0)), 0.0)
    views.update(report("oss2", ost(1)), 100.0)
    assert [o.usable for o in views.view("lustre", 180.0).osts] == [True, True]
    assert [o.usable for o in views.view("lustre", 181.0).osts] == [False, True]
    assert views.age_s("lustre", 181.0) == 81.0
    views.update(report("oss1", ost(0)), 182.0)
    assert [o.stale for o in views.view("lustre", 183.0).osts] == [False, False]


def test_a_silent_server_goes_stale_though_the_clock_was_set_back() -> None:
    views = ViewBuilder(180)
    for now in (100_000.0, 100_060.0, 50.0):
        views.update(report("oss1", ost(0)), now)
        if now > 50:
            views.update(report("oss2", ost(1)), now)
    assert [o.usable for o in views.view("lustre", 60.0).osts] == [True, True]
    assert [o.usable for o in views.view("lustre", 231.0).osts] == [False, False]


def test_an_ost_belongs_to_the_oss_that_reported_it_last() -> None:
    views = ViewBuilder(180)
    views.update(report("oss1", ost(0), ost(1)), 0.0)
    views.update(report("oss2", ost(2)), 0.0)
    views.update(report("oss2", ost(1), ost(2)), 60.0)
    views.update(report("oss1", ost(0)), 61.0)
    view = views.view("lustre", 62.0)
    assert [(o.index, o.oss, o.usable) for o in view.osts] == [
        (0, "oss1", True),
        (1, "oss2", True),
        (2, "oss2", True),
    ]


def test_an_ost_that_nobody_serves_goes_stale_though_its_server_reports() -> None:
    views = ViewBuilder(180)
    views.update(report("oss1", ost(0), ost(1)), 0.0)
    for now in range(60, 300, 60):
        views.update(report("oss1", ost(0)), float(now))
    assert [o.stale for o in views.view("lustre", 241.0).osts] == [False, True]


def test_pools_and_states_come_from_the_mds(data: Path) -> None:
    views = ViewBuilder(180, data / "mds")
    views.update(report("oss1", *(ost(i) for i in range(7))), 0.0)
    view = views.view("lustre", 1.0)
    assert [o.pools for o in view.osts] == [("flash",)] * 5 + [()] * 2
    assert all(o.active for o in view.osts)


def test_what_the_mds_says_is_read_again_after_a_while(tmp_path: Path) -> None:
    path = tmp_path / "proc/fs/lustre/lod/lustre-MDT0000-mdtlov/pools/flash"
    path.parent.mkdir(parents=True)
    path.write_text("lustre-OST0000_UUID\n")
    views = ViewBuilder(1e9, tmp_path)
    views.update(report("oss1", ost(0), ost(1)), 0.0)
    assert [o.pools for o in views.view("lustre", 0.0).osts] == [("flash",), ()]
    path.write_text("lustre-OST0001_UUID\n")
    assert [o.pools for o in views.view("lustre", 5.0).osts] == [("flash",), ()]
    assert [o.pools for o in views.view("lustre", 31.0).osts] == [(), ("flash",)]


@pytest.mark.parametrize(
    "bad",
    [
        report("oss1", ost(0), cpu_load=float("nan")),
        report("oss1", ost(0), memory_load=1.5),
        report("oss1", ost(0), lnet_bytes_per_s=float("inf")),
    ],
)
def test_a_report_with_impossible_values_changes_nothing(bad: OssReport) -> None:
    views = ViewBuilder(180)
    assert not views.update(bad, 0.0)
    assert views.fs_names() == [] and views.servers() == {}
    assert views.update(report("oss1", ost(0)), 0.0)


@pytest.mark.parametrize(
    "bad",
    [
        ost(-1),
        ost(70_000),
        OstReport("lustre", 7, 10, 11, 5),
        OstReport("lustre", 7, 0, 0, 0),
        ost(7, write_usecs=-1),
        ost(7, counters_start_s=float("nan")),
        ost(7, writes=IoCounters("brw_stats", usecs=-1)),
        ost(7, reads=IoCounters("brw_stats", start_s=float("inf"))),
    ],
)
def test_an_ost_with_impossible_values_drops_itself_and_not_its_server(
    bad: OstReport, caplog: pytest.LogCaptureFixture
) -> None:
    views = ViewBuilder(180)
    with caplog.at_level(logging.WARNING, "tarazu.stats"):
        assert views.update(report("oss1", ost(0), bad, ost(2)), 0.0)
        assert views.update(report("oss1", ost(0), bad, ost(2)), 60.0)
    assert [o.index for o in views.view("lustre", 61.0).osts] == [0, 2]
    (name,) = views.impossible["oss1"]
    assert [r.getMessage() for r in caplog.records] == [
        f"oss1: {name} is left out: it reports impossible values"
    ]
    assert views.update(report("oss1", ost(0), ost(2), ost(7)), 120.0)
    assert views.impossible == {} and len(views.view("lustre", 121.0).osts) == 3


def test_what_clients_tell_of_pools_decides_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper of pools takes out as root what is sick: who has a client's key is not to say beside whom it is."""
    views = ViewBuilder(180)
    views.update(report("oss1", ost(0), ost(1)), 0.0)
    views.tell_pools({"lustre": {"a": (0,)}})
    asked: list[Any] = []
    finder = views.finders["lustre"]
    ask = finder.estimates
    monkeypatch.setattr(finder, "estimates", lambda pools, of: asked.append(pools) or ask(pools, of))
    assert [o.pools for o in views.view("lustre", 0.0).osts] == [("a",), ()]
    assert asked == [{0: (), 1: ()}]


def test_pools_that_a_client_tells_are_bounded_and_the_newest_word_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(view_module, "MAX_TOLD", 3)
    views = ViewBuilder(180)
    views.tell_pools({"lustre": {"early": (0,)}})
    views.update(report("oss1", ost(0), ost(1)), 0.0)
    assert [o.pools for o in views.view("lustre", 0.0).osts] == [(), ()], "of no file system that is known"
    views.tell_pools({"lustre": {"b": (0, 1, 1), "a": ()}, "elsewhere": {"x": (1,)}})
    assert [o.pools for o in views.view("lustre", 0.0).osts] == [("b",), ("b",)]
    views.tell_pools({"lustre": {"a": (0,), "b": (0, 7)}})
    views.tell_pools({"lustre": {"huge": (0, 1, 2, 3)}})
    assert [o.pools for o in views.view("lustre", 0.0).osts] == [("a", "b"), ()]


def lnet_loads(*rates: dict[str, float]) -> dict[str, float]:
    views = ViewBuilder(180)
    for now, moment in enumerate(rates):
        for oss, rate in moment.items():
            views.update(report(oss, ost(int(oss[-1])), lnet_bytes_per_s=rate), float(now))
    return {oss.name: oss.lnet_load for oss in views.view("lustre", 1.0).osses}


def test_lnet_load_is_relative_to_the_highest_rate_seen() -> None:
    assert lnet_loads({"oss1": 4e9}, *[{"oss1": 1e9}] * 5) == {"oss1": 0.25}
    assert lnet_loads({"oss1": 1e9}, *[{"oss1": 4e9}] * 5) == {"oss1": 1.0}


def test_a_burst_that_one_server_reported_first_hardly_counts() -> None:
    quiet = [{"oss1": 0.0, "oss2": 0.0}] * 4
    assert lnet_loads(*quiet, {"oss1": 4e9}) == {"oss1": 0.2, "oss2": 0.0}


def test_a_server_that_was_never_busy_is_not_loaded_by_its_own_noise() -> None:
    assert lnet_loads({"oss1": 3000.0})["oss1"] == 3000.0 / LNET_FLOOR_BYTES_PER_S
    assert lnet_loads({"oss1": 4e9, "oss2": 4e7})["oss2"] == pytest.approx(0.1)


def test_speeds_reach_the_view() -> None:
    views = ViewBuilder(180)
    for now, size in ((0, 0), (60, 4 * GB), (120, 8 * GB)):
        osts = [
            ost(i, write_bytes=size, write_samples=size // 10**6, write_usecs=size // (10 if i == 2 else 100))
            for i in range(4)
        ]
        views.update(report("oss1", *osts), float(now))
    speeds = [o.write_bytes_per_s for o in views.view("lustre", 121.0).osts]
    assert speeds == pytest.approx([100e6, 100e6, 10e6, 100e6])


def test_the_highest_rate_of_an_ost_is_known_whoever_serves_it() -> None:
    views = ViewBuilder(180)
    for now, oss, written in (
        (0, "oss1", 0),
        (10, "oss1", 2 * GB),
        (20, "oss1", 3 * GB),
        (30, "oss2", 9 * GB),
    ):
        views.update(report(oss, ost(0, write_bytes=written), ost(1)), float(now))
    busy, idle = views.view("lustre", 31.0).osts
    assert busy.peak_bytes_per_s == 0.2 * GB and idle.peak_bytes_per_s is None


def test_counters_that_could_not_be_read_once_are_no_reset() -> None:
    views = ViewBuilder(180)
    blind = report("oss1", ost(0), unreadable=("obdfilter.*.stats",))
    seen = report("oss1", ost(0, write_bytes=GB, write_samples=1000, write_usecs=10**9))
    for now, message in enumerate((seen, blind, seen)):
        views.update(message, float(now))
    assert views.view("lustre", 3.0).osts[0].write_bytes_per_s is None


def test_the_gate_closes_at_its_limits(oss_root: Path) -> None:
    stat = oss_root / "proc/stat"
    gate = Gate(oss_root, cpu_limit=0.70, memory_limit=0.50)
    stat.write_text("cpu  100 0 100 800 0 0 0 0 0 0\n")
    gate.sample(0.0)
    assert gate.why_closed() == "" and 0.2 < gate.memory_load < 0.3
    stat.write_text("cpu  175 0 100 825 0 0 0 0 0 0\n")
    gate.sample(0.5)
    assert gate.why_closed() == "", "too short a time for a share"
    gate.sample(1.0)
    assert gate.why_closed() == "CPU at 75% of this node, limit 70%"
    stat.write_text("cpu  175 0 100 925 0 0 0 0 0 0\n")
    gate.sample(2.0)
    assert gate.why_closed() == ""
    gate.memory_limit = 0.25
    assert gate.why_closed() == "memory at 25% of this node, limit 25%"


def test_the_gate_stays_open_when_the_node_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate(tmp_path, 0.7, 0.5)
    with caplog.at_level(logging.WARNING):
        gate.sample(0.0)
        gate.sample(5.0)
    assert gate.why_closed() == "" and len(caplog.records) == 1


def test_a_late_report_of_the_old_server_does_not_take_the_ost_back() -> None:
    views = ViewBuilder(180)
    views.update(report("oss1", ost(0), ost(1), incarnation=7), 0.0)
    late = report("oss1", ost(0), ost(1), incarnation=7)
    # Far ahead by oss1's clock, and by number older than what came.
    views.update(OssReport("oss1", 2, 9e9, 60.0, 0.0, 0.0, 0.0, (ost(0),), incarnation=7), 60.0)
    views.update(report("oss2", ost(1), incarnation=9), 61.0)
    assert views.update(late, 62.0)
    assert [o.oss for o in views.view("lustre", 63.0).osts] == ["oss1", "oss2"]
    assert views.late == {"oss1": 1}


def test_the_newest_report_again_is_not_late() -> None:
    views = ViewBuilder(180)
    for _ in range(3):
        assert views.update(report("oss1", ost(0), incarnation=7), 0.0)
    assert views.late.total() == 0


def test_a_report_that_is_sent_again_to_a_new_mdsd_counts_as_old_as_it_is() -> None:
    views = ViewBuilder(180)
    views.update(report("oss2", ost(1), incarnation=9, age_s=5.0), 100.0)
    views.update(report("oss1", ost(0), ost(1), incarnation=7, age_s=50.0), 101.0)
    assert [(o.index, o.oss) for o in views.view("lustre", 102.0).osts] == [(0, "oss1"), (1, "oss2")]
    assert views.servers()["oss1"][1] == 51.0
    # What has no age is new: whoever reported it last serves it.
    views.update(report("oss3", ost(1), incarnation=4), 103.0)
    assert [o.oss for o in views.view("lustre", 104.0).osts] == ["oss1", "oss3"]


def test_a_restarted_ossd_is_heard_whatever_number_its_reports_have() -> None:
    views = ViewBuilder(180)
    for sequence, incarnation, now in ((50, 1, 0.0), (1, 2, 60.0), (2, 2, 120.0), (51, 1, 180.0)):
        values = (0.0, 60.0, 0.0, 0.0, 0.0, (ost(0),))
        views.update(OssReport("oss1", sequence, *values, incarnation=incarnation), now)
        assert views.servers()["oss1"][1] == now
    assert not views.late


def test_two_servers_that_report_one_target() -> None:
    views = ViewBuilder(180)
    for now in range(0, 300, 60):
        for name in ("oss1", "oss2"):
            views.update(report(name, ost(0)), now + (name == "oss2"))
    assert [(o.oss, o.usable) for o in views.view("lustre", 250.0).osts] == [("oss2", True)]
    assert views.details("lustre", 250.0)[0].also_reported_by == ("oss1",)
    # One of them is gone: for a while nobody knows which.
    views.update(report("oss2", ost(0)), 400.0)
    assert views.details("lustre", 400.0)[0].also_reported_by == ()


def test_a_target_that_is_named_twice_in_a_report_counts_once() -> None:
    views = ViewBuilder(180)
    views.update(report("oss1", ost(0, degraded=True), ost(0)), 0.0)
    (only,) = views.view("lustre", 1.0).osts
    assert only.degraded


def test_counters_of_another_server_are_no_evidence() -> None:
    views = ViewBuilder(180)

    def count(ios: int) -> IoCounters:
        return IoCounters("brw_stats", ios, ios << 20, ios * 1000)

    views.update(report("oss1", ost(0, writes=count(1000)), ost(1, writes=count(1000))), 0.0)
    views.update(report("oss2", ost(0, writes=count(9000))), 60.0)
    views.update(report("oss1", ost(1, writes=count(2000))), 60.0)
    measured = {o.index: o.speed_source for o in views.view("lustre", 61.0).osts}
    assert measured == {0: "", 1: "brw_stats"}


def test_silence_of_mdsd_makes_no_server_stale() -> None:
    views = ViewBuilder(180)
    views.update(report("oss1", ost(0)), 0.0)
    assert not views.view("lustre", 1000.0).osts[0].usable
    views.excuse(900.0)
    assert views.view("lustre", 1000.0).osts[0].usable
    # One that is dead is stale after the rest of its time.
    assert not views.view("lustre", 1081.0).osts[0].usable


def test_how_lustre_itself_chooses_is_known(data: Path) -> None:
    views = ViewBuilder(180, data / "versions/2.16-ldiskfs/mds")
    views.update(report("oss1", ost(0, "scratch")), 0.0)
    assert views.qos("scratch", 1.0)["scratch-MDT0000-mdtlov"]["qos_prio_free"] == "91%"


def test_which_source_times_each_target(data: Path) -> None:
    views = ViewBuilder(180)
    views.update(Collector(data / "versions/2.16-zfs/oss", "zfs1").collect(0.0), 0.0)
    views.update(Collector(data / "versions/2.12-ldiskfs/oss", "old1").collect(0.0), 0.0)
    assert {i: d.timed_by for i, d in views.details("scratch", 1.0).items()} == {
        0: ("brw_stats", "brw_stats"),
        1: ("brw_stats", "brw_stats"),
        3: ("brw_stats", "ost_io"),
        4: ("brw_stats", "ost_io"),
    }
