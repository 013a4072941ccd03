"""Excluded targets, each user's share of the promises, and which reports get in."""

from __future__ import annotations

import msgspec
import pytest

from tarazu.allocate.ledger import Ledger
from tarazu.daemons.mdsd import limits
from tarazu.daemons.mdsd.exclusions import Exclusions
from tarazu.daemons.mdsd.limits import PromiseLimits, ReportLimits
from tarazu.errors import ConfigError
from tarazu.lustre import EOF
from tarazu.model import Component, Layout, Ost, SystemView
from tarazu.wire.messages import AllocationRequest, FileSpec
from tarazu.wire.reports import JobRate, OssReport, OstReport

GIB = 1 << 30
VIEW = SystemView(
    "scratch",
    0.0,
    tuple(Ost(i, "oss1", 10 * GIB, 10 * GIB, 10 * GIB, pools=("flash",) if i > 3 else ()) for i in range(6)),
)


def usable(*entries: str) -> list[int]:
    return [o.index for o in Exclusions(entries).apply(VIEW).osts if o.usable]


def test_osts_and_pools_are_excluded_on_their_own_file_system() -> None:
    assert usable() == [0, 1, 2, 3, 4, 5]
    assert usable("scratch:0-1,3") == [2, 4, 5]
    assert usable("scratch.flash") == [0, 1, 2, 3]
    assert usable("other:0-5", "other.flash") == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("entry", ["scratch", "scratch:x", ":1", ".flash", "scratch."])
def test_anything_else_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"mdsd\.exclude: expected entries such as"):
        Exclusions([entry])


def ask(id: str, uid: int, gib: int) -> AllocationRequest:
    layout = Layout((Component(0, EOF, 1 << 20, 1),))
    return AllocationRequest(id, "scratch", uid, "", (layout,), (FileSpec(gib * GIB, 0),), 1.0, 60.0)


def test_one_user_cannot_hold_all_promises_and_others_are_not_touched() -> None:
    ledger = Ledger()
    promised = PromiseLimits(0.5, ledger)
    first = ask("a", 1000, 20)
    assert promised.refusal(first, VIEW) == ""
    ledger.promise("a", "scratch", 60.0, [{0: 10 * GIB, 1: 10 * GIB}], uid=1000)
    ledger.promise("elsewhere", "home", 60.0, [{0: 100 * GIB}], uid=1000)
    assert "mdsd.user_share" in promised.refusal(ask("b", 1000, 11), VIEW)
    assert promised.refusal(ask("b", 1000, 10), VIEW) == ""
    assert promised.refusal(ask("c", 1001, 30), VIEW) == ""
    ledger.ended("a")
    assert promised.refusal(ask("b", 1000, 30), VIEW) == ""


def test_a_user_gets_what_his_share_still_holds_the_largest_files_first() -> None:
    ledger = Ledger()
    promised = PromiseLimits(0.5, ledger)
    files = tuple(FileSpec(gib * GIB, 0) for gib in (2, 25, 9, 1))
    request = msgspec.structs.replace(ask("a", 1000, 0), files=files)
    left = promised.beyond(request, VIEW)
    assert [*left] == [2] and "mdsd.user_share" in left[2].why and not left[2].never
    assert promised.refusal(request, VIEW) == ""
    ledger.promise("b", "scratch", 60.0, [{0: 30 * GIB}], uid=1000)
    assert len(promised.beyond(request, VIEW)) == 4
    assert promised.refusal(request, VIEW).endswith("(mdsd.user_share)")


def test_one_user_cannot_fill_the_memory_with_promises_and_others_are_not_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MAX_PROMISES_OF_USER", 3)
    monkeypatch.setattr(limits, "MAX_PROMISES", 5)
    monkeypatch.setattr(limits, "MAX_STRIPES_OF_USER", 30)
    ledger = Ledger()
    promised = PromiseLimits(0.5, ledger)
    for number in range(3):
        assert promised.refusal(ask("new", 1000, 0), VIEW) == ""
        ledger.promise(f"a{number}", "scratch", 60.0, [{0: 1}] * 10, uid=1000)
    assert promised.refusal(ask("new", 1000, 0), VIEW) == (
        "expected at most 3 promises of uid 1000, found 3 and one more"
    )
    ledger.ended("a0")
    ledger.promise("b", "scratch", 60.0, [{0: 1}] * 10, uid=1000, now=0.0)
    assert promised.refusal(ask("new", 1001, 0), VIEW) == ""
    ledger.ended("a1")
    assert promised.refusal(ask("new", 1000, 1), VIEW) == ""
    monkeypatch.setattr(limits, "MAX_STRIPES_OF_USER", 20)
    assert "expected at most 20 promised stripes of uid 1000, found 21" in promised.refusal(
        ask("new", 1000, 1), VIEW
    )
    for number in range(3):
        ledger.promise(f"c{number}", "scratch", 60.0, [{0: 1}], uid=1001 + number)
    assert "of all users together" in promised.refusal(ask("new", 1009, 0), VIEW)


def report(oss: str, fs_name: str = "scratch", indices: range = range(2)) -> OssReport:
    osts = tuple(OstReport(fs_name, index, 1, 1, 1) for index in indices)
    return OssReport(oss, 1, 0.0, 60.0, 0.5, 0.25, 0.0, osts)


def test_names_that_nobody_has_do_not_fill_the_memory_and_known_servers_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MAX_SERVERS", 2)
    monkeypatch.setattr(limits, "MAX_FILE_SYSTEMS", 2)
    monkeypatch.setattr(limits, "MAX_TARGETS", 5)
    reports = ReportLimits()
    for known in (report("oss1"), report("oss2", "home")):
        assert reports.refusal(known) == ""
        reports.note(known)
    for refused, expected in (
        (report("oss3"), "at most 2 servers"),
        (report("oss1", "junk"), "at most 2 file systems"),
        (report("oss1", "home", range(9)), "at most 5 targets"),
        (report("x" * 300), "names of at most 256"),
        (report("oss1", "x" * 300), "names of at most 256"),
    ):
        assert expected in reports.refusal(refused), refused
    # Failover moves targets that are known already.
    assert reports.refusal(report("oss2")) == "" and reports.refusal(report("oss1", "home")) == ""


def test_what_nobody_asks_for_is_not_kept_of_a_report() -> None:
    named = (JobRate(f"j{n}", 10_000 - n, 0, n) for n in range(9_999))
    jobs = (*named, JobRate("x" * 300, 0, 0, 10**6))
    full = msgspec.structs.replace(report("oss1"), jobs=jobs, unreadable=("x" * 1000,) * 10_000)
    trimmed = ReportLimits.trimmed(full)
    assert [job.job_id for job in trimmed.jobs] == [
        *(f"j{n}" for n in range(limits.MAX_JOBS)),
        *(f"j{n}" for n in range(9_998, 9_999 - limits.MAX_JOBS, -1)),
    ], "of most bytes, then of most operations; no name that is none"
    assert trimmed.osts == full.osts
    assert len(trimmed.unreadable) == limits.MAX_UNREADABLE and len(trimmed.unreadable[0]) == 256
