"""What a report of pools says, of a real cluster's answers (16.2.15, two OSDs a class) and of what may happen to it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu.filesystem import pools
from tarazu.filesystem.rados import Rados, RadosError
from tarazu.ost_state import Verdict
from tarazu.stats.view import ViewBuilder
from tarazu.wire.reports import OssReport, OstReport

DATA = Path(__file__).parents[1] / "data" / "ceph" / "16.json"
ANSWERS: dict[str, Any] = json.loads(DATA.read_text())
NAMES = {pool["pool_name"]: pool["pool"] for pool in ANSWERS["osd dump"]["pools"]}
BULK, SCRATCH, SINGLE = NAMES["bulk"], NAMES["scratch"], NAMES["single"]


def report(change: Callable[[dict[str, Any]], object] = lambda _: None) -> OssReport:
    """Of the cluster after `change` of its answers."""
    answers = copy.deepcopy(ANSWERS)
    change(answers)
    return pools.Pools().report(pools.ask(lambda prefix, **_: answers[prefix]), 1.0, 1.0)


def targets(change: Callable[[dict[str, Any]], object] = lambda _: None) -> dict[int, OstReport]:
    return {ost.index: ost for ost in report(change).osts}


def verdicts(change: Callable[[dict[str, Any]], object] = lambda _: None) -> dict[int, tuple[Verdict, str]]:
    """As mdsd judges them."""
    builder = ViewBuilder(60.0)
    assert builder.update(report(change), 1.0)
    view = builder.view("cephfs", 2.0)
    assert view.default_target == BULK
    return {ost.index: (ost.judged.verdict, ost.judged.why) for ost in view.osts}


def pool(answers: dict[str, Any], index: int) -> dict[str, Any]:
    return next(p for p in answers["osd dump"]["pools"] if p["pool"] == index)


def osd(answers: dict[str, Any], number: int) -> dict[str, Any]:
    return next(o for o in answers["osd dump"]["osds"] if o["osd"] == number)


def test_data_pools_are_targets_with_their_class_and_osds() -> None:
    found = targets()
    assert sorted(found) == sorted([BULK, SCRATCH, SINGLE])
    assert found[BULK].label == "pool bulk (hdd, osd.2-3)"
    assert found[SCRATCH].label == "pool scratch (ssd, osd.4-5)"
    assert (found[BULK].nonrotational, found[SCRATCH].nonrotational) == (False, True)
    assert [i for i, ost in found.items() if ost.default] == [BULK]
    assert 0 < found[SCRATCH].avail_bytes <= found[SCRATCH].total_bytes


def test_a_pool_that_is_less_safe_than_the_default_takes_no_files() -> None:
    assert verdicts()[SINGLE] == (
        Verdict.REFUSING,
        "it survives the loss of 0 OSDs, the default pool of 1",
    )
    assert verdicts()[BULK][0] is Verdict.OK


def test_an_erasure_coded_pool_is_as_safe_as_its_coding_chunks() -> None:
    def coded(m: str) -> Callable[[dict[str, Any]], None]:
        def change(answers: dict[str, Any]) -> None:
            pool(answers, SCRATCH).update(erasure_code_profile="p", size=6)
            answers["osd dump"]["erasure_code_profiles"]["p"] = {"k": "4", "m": m}

        return change

    assert verdicts(coded("1"))[SCRATCH][0] is Verdict.OK
    assert verdicts(coded("0"))[SCRATCH][0] is Verdict.REFUSING


def test_a_pool_is_as_wide_as_the_osds_that_write_one_copy() -> None:
    def coded(answers: dict[str, Any]) -> None:
        pool(answers, SCRATCH).update(erasure_code_profile="p", size=6)
        answers["osd dump"]["erasure_code_profiles"]["p"] = {"k": "4", "m": "2"}

    assert (targets()[BULK].width, targets()[SCRATCH].width) == (1.0, 1.0)  # 2 OSDs, 2 copies
    assert targets(coded)[SCRATCH].width == pytest.approx(2 * 4 / 6)
    assert targets(lambda answers: osd(answers, 4).update(up=0))[SCRATCH].width == 0.5
    assert targets(lambda answers: pool(answers, SCRATCH).update(size=2**40))[SCRATCH].width > 0
    builder = ViewBuilder(60.0)
    assert builder.update(report(coded), 1.0)
    widths = {ost.index: ost.width for ost in builder.view("cephfs", 2.0).osts}
    assert widths[SCRATCH] == pytest.approx(2 * 4 / 6)


@pytest.mark.parametrize("width", [0.0, -1.0, float("nan"), float("inf"), 1e9])
def test_a_width_that_cannot_be_is_left_out(width: float) -> None:
    whole = report()
    odd = [msgspec.structs.replace(ost, width=width) if ost.index == SCRATCH else ost for ost in whole.osts]
    builder = ViewBuilder(60.0)
    assert builder.update(msgspec.structs.replace(whole, osts=tuple(odd)), 1.0)
    assert SCRATCH not in {ost.index for ost in builder.view("cephfs", 2.0).osts}


def test_a_pool_on_the_same_osds_as_another_takes_files_only_where_that_one_does_not() -> None:
    """Two such pools write no faster than one, and share their room."""

    def same(answers: dict[str, Any]) -> None:
        pool(answers, SCRATCH)["crush_rule"] = pool(answers, BULK)["crush_rule"]

    def full(answers: dict[str, Any]) -> None:
        same(answers)
        pool(answers, BULK)["flags_names"] += ",full,full_quota"

    refused = (Verdict.REFUSING, "on the same OSDs as pool bulk: nothing is gained there")
    assert (verdicts(same)[SCRATCH], verdicts(same)[BULK][0]) == (refused, Verdict.OK)
    assert (verdicts(full)[SCRATCH][0], verdicts(full)[BULK][0]) == (Verdict.OK, Verdict.FULL)


def test_full_pools_quotas_and_osds_that_are_down_are_seen() -> None:
    def full(answers: dict[str, Any]) -> None:
        pool(answers, SCRATCH)["flags_names"] += ",full,full_quota"

    def quota(answers: dict[str, Any]) -> None:
        pool(answers, SCRATCH).update(quota_max_bytes=100 << 20, quota_max_objects=1)

    def one_down(answers: dict[str, Any]) -> None:
        osd(answers, 4)["up"] = 0

    def all_down(answers: dict[str, Any]) -> None:
        osd(answers, 4)["up"] = osd(answers, 5)["in"] = 0

    def paused(answers: dict[str, Any]) -> None:
        answers["osd dump"]["flags"] = "pauserd,pausewr"

    assert verdicts(full)[SCRATCH][0] is Verdict.FULL
    limited = targets(quota)[SCRATCH]
    assert (limited.total_bytes, limited.files_free) == (100 << 20, 1)
    assert verdicts(one_down)[SCRATCH] == (Verdict.DEGRADED, "osd.4 down or out")
    assert verdicts(all_down)[SCRATCH][0] is Verdict.REFUSING
    assert {verdict for verdict, _ in verdicts(paused).values()} == {Verdict.REFUSING}


def test_times_are_those_of_commits_on_a_pools_own_osds() -> None:
    answers = copy.deepcopy(ANSWERS)
    ask: Callable[..., Any] = lambda prefix, **_: answers[prefix]  # noqa: E731
    of = pools.Pools()
    of.report(pools.ask(ask), 0.0, 0.0)
    for entry in answers["osd perf"]["osdstats"]["osd_perf_infos"]:
        entry["perf_stats"]["commit_latency_ms"] = 40 if entry["id"] in (4, 5) else 5
    for entry in answers["df"]["pools"]:
        entry["stats"]["wr"] += 100
        entry["stats"]["wr_bytes"] += 100 << 22
    second = {ost.index: ost.writes for ost in of.report(pools.ask(ask), 10.0, 10.0).osts}
    slow, fast = second[SCRATCH], second[BULK]
    assert slow and fast
    assert (slow.usecs, fast.usecs) == (4_000_000, 500_000)
    assert slow.source == "osd_perf"


def test_a_rule_that_takes_an_unknown_root_or_a_ring_has_no_osds() -> None:
    def ring(answers: dict[str, Any]) -> None:
        for node in answers["osd tree"]["nodes"]:
            node["children"] = [n["id"] for n in answers["osd tree"]["nodes"]]

    def unknown(answers: dict[str, Any]) -> None:
        for rule in answers["osd crush rule dump"]:
            rule["steps"] = [{"op": "take", "item_name": "nowhere~ssd"}]

    assert targets(ring)[SCRATCH].label == "pool scratch (ssd, osd.4-5)"
    assert targets(unknown)[SCRATCH].no_create


@pytest.mark.parametrize("prefix", ANSWERS)
@pytest.mark.parametrize("instead", [None, [], {}, "text", {"pools": [{}]}, [1], {"nodes": 7}])
def test_an_answer_of_another_form_is_one_line(prefix: str, instead: object) -> None:
    answers = {**ANSWERS, prefix: instead}
    try:
        state = pools.ask(lambda prefix, **_: answers[prefix])
    except RadosError as error:
        assert "\n" not in str(error)
    else:
        pools.Pools().report(state, 1.0, 1.0)


def test_without_librados_or_a_configuration_nothing_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pools.configuration(tmp_path, {}) is None
    (tmp_path / "etc/ceph").mkdir(parents=True)
    (tmp_path / "etc/ceph/ceph.conf").touch()
    assert pools.configuration(tmp_path, {}) == str(tmp_path / "etc/ceph/ceph.conf")
    monkeypatch.setattr("tarazu.filesystem.rados.LIBRARY", "librados-that-is-not-there.so")
    with pytest.raises(RadosError, match="librados-that-is-not-there"):
        Rados(pools.CLIENT)
    watch = pools.PoolWatch(str(tmp_path / "etc/ceph/ceph.conf"), lambda: 1.0)
    watch.look()
    assert watch.newest is None
