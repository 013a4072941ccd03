"""One word for each OST, and how even they are: of mdsd's status."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tarazu.errors import WireError
from tarazu.wire.overview import Overview, overview

GB = 10**9
OSS: dict[str, Any] = {
    "age_s": 1.0,
    "stale": False,
    "interval_s": 60.0,
    "cpu_load": 0.1,
    "memory_load": 0.1,
    "lnet_bytes_per_s": 0.0,
    "queue_wait_s": 0.0,
}
OST: dict[str, Any] = {
    "oss": "oss1",
    "total_bytes": 10 * GB,
    "free_bytes": 5 * GB,
    "avail_bytes": 4 * GB,
    "usable": True,
    "writing_bytes_per_s": 0.0,
    "reading_bytes_per_s": 0.0,
}


def status(*osts: dict[str, Any], health: dict[str, Any] | None = None, **oss: Any) -> dict[str, Any]:
    rows = [{**OST, "index": index, **of} for index, of in enumerate(osts)]
    return {
        "osses": {"oss1": {**OSS, **oss}, "oss2": OSS},
        "file_systems": {"fs": {"osts": rows, "health": health or {}}},
    }


def verdicts(found: Overview) -> list[str]:
    return [target.verdict for target in found.targets]


def told(kind: str) -> dict[str, Any]:
    return {"health": kind, "why": "as told", "since_s": 100.0}


@pytest.mark.parametrize(
    ("of", "word"),
    [
        ({}, "ok"),
        ({"degraded": True}, "degraded"),
        ({"relative_speed": 0.6, "degraded": True}, "degraded"),
        ({"relative_speed": 1.0}, "ok"),
        ({"excluded": True, "relative_speed": 0.6, "health": "excluded: mdsd.exclude"}, "excluded"),
        ({"avail_bytes": 0, "excluded": True}, "full"),
        ({"files_free": 0}, "full"),
        ({"free_bytes": 4 * GB // 10}, "nearly-full"),
        ({"free_bytes": 4 * GB // 10, "relative_speed": 0.4}, "sick"),
        ({"no_create": True, "avail_bytes": 0}, "refusing"),
        ({"readonly": True}, "refusing"),
        ({"active": False}, "refusing"),
        ({"stale": True, "readonly": True}, "silent"),
        ({"health": "dead: DISCONN", "stale": True}, "dead"),
        ({"health": "full: prealloc_status ENOSPC"}, "full"),
    ],
)
def test_of_several_the_word_that_weighs_most(of: dict[str, Any], word: str) -> None:
    assert verdicts(overview(status(of, {}))) == [word, "ok"]


def test_what_mdsd_s_health_tells_comes_with_its_reason_and_time() -> None:
    found = overview(status({}, {"relative_speed": 0.3}, health={"1": told("sick")}), taken_s=5.0)
    assert verdicts(found) == ["ok", "sick"] and found.taken_s == 5.0
    sick = found.targets[1]
    assert (sick.name, sick.health, sick.why, sick.since_s) == ("fs-OST0001", "sick", "as told", 100.0)


def test_an_excluded_ost_is_not_ill() -> None:
    target = overview(status({"excluded": True, "health": "excluded: mdsd.exclude"})).targets[0]
    assert (target.excluded, target.health, target.why) == (True, "", "mdsd.exclude")


def test_impossible_values_are_named_by_the_server() -> None:
    assert verdicts(overview(status({}, {}, impossible=["fs-OST0001"]))) == ["ok", "impossible"]


def test_busy_is_who_moves_twice_the_mean_or_whose_server_is_near_its_limits() -> None:
    much = {"writing_bytes_per_s": 30e6}
    assert verdicts(overview(status(much, {}, {}, {}))) == ["busy", "ok", "ok", "ok"]
    assert verdicts(overview(status(much, much, much, much))) == ["ok"] * 4
    little = {"writing_bytes_per_s": 3e6}
    assert verdicts(overview(status(little, {}, {}, {}))) == ["ok"] * 4
    assert verdicts(overview(status({}, {"oss": "oss2"}, cpu_load=0.95))) == ["busy", "ok"]
    assert verdicts(overview(status({}, {"oss": "oss2"}, cpu_load=0.95, stale=True))) == ["ok", "ok"]


def test_imbalance_is_largest_over_mean_of_the_osts_that_are_heard() -> None:
    fuller = {"free_bytes": 0, "writing_bytes_per_s": 8e6, "reading_bytes_per_s": 1e6}
    other = {"writing_bytes_per_s": 3e6}
    (found,) = overview(status(fuller, other, {"stale": True, "free_bytes": 10 * GB})).imbalances
    assert found.fs_name == "fs"
    assert found.fill == pytest.approx(1 / 0.75) and found.load == pytest.approx(9 / 6)


def test_nothing_moved_and_nothing_written_is_even() -> None:
    empty = {"free_bytes": 10 * GB, "writing_bytes_per_s": None}
    (found,) = overview(status(empty, {**empty, "writing_bytes_per_s": 0.0})).imbalances
    assert (found.fill, found.load) == (1.0, None)
    assert overview({"osses": {}, "file_systems": {}}).imbalances == ()


def test_an_mdsd_of_an_earlier_version_says_less() -> None:
    said = {name: value for name, value in OST.items() if not name.endswith("ing_bytes_per_s")}
    row = {**said, "index": 0}
    found = overview({"osses": {}, "file_systems": {"fs": {"osts": [row]}}})
    assert verdicts(found) == ["ok"] and found.targets[0].moving_bytes_per_s is None
    assert found.site_stopped == ""


def test_a_measure_that_is_no_number_is_not_known() -> None:
    found = overview(
        status({"relative_speed": math.nan, "writing_bytes_per_s": math.inf, "latency_s": math.nan})
    )
    (target,) = found.targets
    assert (target.relative_speed, target.moving_bytes_per_s, target.latency_s) == (None, None, None)


@pytest.mark.parametrize(
    "nonsense",
    [
        {},
        {"osses": 3, "file_systems": {}},
        {"unavailable": "silent"},
        status({"total_bytes": "much"}),
        {**status({}), "requests": {"promises": "many"}},
        {**status({}), "requests": {"promises": math.inf}},
    ],
)
def test_what_is_no_status_is_said(nonsense: dict[str, Any]) -> None:
    with pytest.raises(WireError, match=r"mdsd's status: expected servers and file systems"):
        overview(nonsense)


def test_what_parts_have_beside_osts() -> None:
    row = {"kind": "MDT", "fs_name": "fs", "name": "fs-MDT0001", "server": "mds1", "operations_per_s": 5.0}
    known = status({})
    known["parts"] = {
        "off": {"failed": "oops"},
        "mdt": {"targets": [{**row, "index": 1}, {**row, "index": 0}]},
    }
    known["mds"] = {"operations_per_s": {"fs-MDT0001": {"open": 1.0}}}
    found = overview(known)
    assert [(of.index, of.verdict) for of in found.others] == [(0, "ok"), (1, "ok")]
    assert found.metadata_per_s == 10.0 and found.targets == overview(status({})).targets
    assert overview(status({})).others == () and overview(status({})).metadata_per_s is None
