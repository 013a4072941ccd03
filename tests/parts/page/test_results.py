"""Files of results: what the commands print is shown, whatever else lies there is not, or says why."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tarazu.changes.outcome import Gave
from tarazu.changes.trail import Event
from tarazu.daemons.changes.here import Listed
from tarazu.parts.page import results as shown
from tarazu.parts.page.document import overview
from tarazu.parts.page.document import result as document
from tarazu.parts.page.results import Results
from tarazu.parts.page.seen import SystemState
from tarazu.report import report
from tarazu.report.placed import Placed, Spread
from tests.parts.page.sample import HOSTILE

APPLICATION = {
    "application": "ior", "fs_name": "scratch", "runs": 4, "compared": 4, "files": 9, "bytes": 10**12,
    "placed_bytes": 5 * 10**11, "seen_cost": None, "lustre_cost": 1.5, "tarazu_cost": 1.01, "bound_cost": 1.0,
    "lustre_time": 1.8, "tarazu_time": 1.1, "bound_time": 1.0, "gaining": 3,
}  # fmt: skip
REPORT = {
    "wanted": {"since_s": 1.0, "until_s": 2.0, "application": "", "fs_name": ""},
    "applications": [APPLICATION], "runs": [], "damaged": [],
    "reasons": [{"why": "below layout.min_size", "runs": 2, "files": 9, "bytes": 9}],
}  # fmt: skip
SPREAD = {"median": 1.25, "lowest": 1.125, "highest": 1.5}
JOB = {
    "log": "a.darshan", "application": "hacc", "mount": "/scratch", "ranks": 64, "files": 64, "new_files": 64,
    "written_bytes": 2**40, "osts": 35,
    "actual": {"policy": "logged", "seeds": 1, "time_s": {"median": 13.75, "lowest": 13.75, "highest": 13.75}},
    "compared": {
        "placed": [{"policy": "tarazu", "seeds": 1, "ost_cost": SPREAD, "time_s": SPREAD}],
        "ost_cost_bound": 1.0, "time_bound_s": 3.0, "stripes": 9,
    },
}  # fmt: skip
WHATIF = [{"log": "a.darshan", "notes": [], "file_systems": [JOB]}]


def put(directory: Path, name: str, value: object, at_s: float = 1e9) -> None:
    (directory / name).write_text(
        value if isinstance(value, str) else json.dumps(value), errors="surrogatepass"
    )
    os.utime(directory / name, (at_s, at_s))


def changes() -> dict:
    """As `tarazu change list --json` prints them."""
    gave = Gave("time", 2.0, 1.0, 2.1, 1.2, 5, "better")
    of_all = {"agent": "parameters", "lever": "nrs", "target": ""}
    listed = [
        Listed(**of_all, id="ab12cd34", state="set", wanted={"": "crrn 8"}, before={"a": "fifo"}, gave=gave),
        Listed(**of_all, state="cannot mend", why=HOSTILE),
    ]
    return msgspec.to_builtins({"agents": [], "changes": listed})


def test_changes_of_another_node_are_shown_what_is_amiss_first(tmp_path: Path) -> None:
    put(tmp_path, "oss1.json", changes())
    results = Results(str(tmp_path))
    (oss1,) = results.all()
    assert oss1.problem == ""
    for page in (document(oss1), overview(SystemState(), {}, [oss1], "", now_s=1e9, every_s=0)):
        assert "crrn 8 (was fifo)" in page and "was 2.1, is 1.2 over 5 hours: better" in page
        assert page.index("cannot mend") < page.index("crrn 8") and "<script>alert" not in page
    put(tmp_path, "oss1.json", {"changes": [{"state": "unheard of"}]}, 2e9)
    assert "tarazu change list" in results.all()[0].problem


def test_a_log_of_changes_of_another_node_is_news(tmp_path: Path) -> None:
    """As `tarazu change log --json` prints it; also of a node on which nothing has happened."""
    of_all = {
        "agent": "parameters",
        "lever": "nrs",
        "target": HOSTILE,
        "wanted": {"": "crrn 8"},
        "by": "root",
    }
    events = [
        Event(time="2001-09-09T01:00:00Z", event="set", id="ab12", **of_all),
        Event(time="2001-09-09T01:40:00Z", event="restored", id="ab12", **of_all, why="slower"),
        Event(time="2001-09-01T00:00:00Z", event="set", id="ef56", **{**of_all, "wanted": {"": "orr"}}),
    ]
    put(tmp_path, "oss1.json", b"".join(event.encoded() for event in events).decode())
    put(tmp_path, "oss2.json", "")
    found = {of.name: of for of in Results(str(tmp_path)).all()}
    assert [found[name].problem for name in ("oss1", "oss2")] == ["", ""] and found["oss2"].trail == ()
    page = overview(SystemState(), {}, list(found.values()), "", now_s=1e9, every_s=0)
    assert "(crrn 8) was taken back" in page and "slower (by root)" in page and "orr" not in page
    assert "3 events" in page and "root's to read" not in page
    for of in found.values():
        assert "<script>alert" not in document(of) and "Events, the newest first" in document(of)
    put(tmp_path, "oss1.json", '{"event": "set"}\n{"event"', 2e9)
    assert "change log" in Results(str(tmp_path)).all()[0].problem


def test_reports_and_whatifs_are_shown_the_newest_first(tmp_path: Path) -> None:
    put(tmp_path, "week.json", REPORT, 1e9)
    put(tmp_path, "hacc.json", WHATIF, 2e9)
    results = Results(str(tmp_path))
    hacc, week = results.all()
    assert (hacc.name, week.name, hacc.problem + week.problem) == ("hacc", "week", "")
    page = document(week)
    assert "below layout.min_size" in page and ">ior</th>" in page and "1.010" in page and "50%" in page
    page = document(hacc)
    assert "12.5 s at most" in page and "1.250 (1.125–1.500)" in page and "bound" in page
    assert json.loads(results.raw("week") or b"") == REPORT
    put(tmp_path, "week.json", {**REPORT, "applications": []}, 3e9)
    assert results.all()[0].report == shown.SavedReport(
        shown.SavedSpan(1.0, 2.0), (), (shown.SavedReason("below layout.min_size", 2, 9),)
    )


def test_it_is_what_the_commands_print() -> None:
    """Field by field."""
    for ours, theirs in (
        (shown.SavedReport, report.Report),
        (shown.SavedSpan, report.ReportScope),
        (shown.SavedApplication, report.ApplicationReport),
        (shown.SavedReason, report.Reason),
        (shown.SavedPlacement, Placed),
        (shown.SavedSpread, Spread),
    ):
        assert set(ours.__struct_fields__) <= set(theirs.__struct_fields__), ours


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.sampled_from(["<b>", "\ud800", "", 1.5, float("nan"), 10**400])
        | st.sampled_from([REPORT, WHATIF, SPREAD]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["wanted", "log", "file_systems", "applications", "x"]), inner)
        ),
        max_leaves=8,
    )
)
@example("\ud800")
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_file_holds_it_costs_no_page(tmp_path: Path, value: object) -> None:
    put(tmp_path, "x.json", value)
    (found,) = Results(str(tmp_path)).all()
    assert document(found).startswith("<!doctype html>")


def test_what_is_none_says_why_and_what_is_no_file_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("[]")
    (tmp_path / "link.json").symlink_to(tmp_path / "secret")
    (tmp_path / "directory.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    for name, value in {
        "broken.json": "{", "list.json": "[1, 2]", "other.json": {"a": 1}, "deep.json": "[" * 50_000,
        ".hidden.json": WHATIF, "no-suffix": WHATIF, "a b.json": WHATIF, "large.json": WHATIF * 20,
    }.items():  # fmt: skip
        put(tmp_path, name, value)
    monkeypatch.setattr(shown, "BYTES", 60_000)
    put(tmp_path, "huge.json", "[" + " " * 60_000 + "]")
    found = {of.name: of.problem for of in Results(str(tmp_path)).all()}
    assert sorted(found) == ["broken", "deep", "huge", "large", "list", "other"]
    assert found.pop("large") == "" and all(found.values())
    results = Results(str(tmp_path))
    assert [results.raw(name) for name in ("link", "pipe", "../secret", "secret", "no")] == [None] * 5
    assert Results(str(tmp_path / "nowhere")).all() == [] == Results("").all()


def test_of_many_the_newest_are_shown(tmp_path: Path) -> None:
    for number in range(shown.FILES + 5):
        put(tmp_path, f"r{number}.json", "[]", 1e9 + number)
    names = [of.name for of in Results(str(tmp_path)).all()]
    assert len(names) == shown.FILES and names[0] == f"r{shown.FILES + 4}"


def test_names_in_them_are_text(tmp_path: Path) -> None:
    put(tmp_path, "r.json", {**REPORT, "applications": [{**APPLICATION, "application": HOSTILE}]})
    put(tmp_path, "w.json", [{"log": HOSTILE, "file_systems": [{**JOB, "application": HOSTILE}]}])
    put(tmp_path, "x.json", json.dumps({"wanted": HOSTILE}))
    for of in Results(str(tmp_path)).all():
        page = document(of)
        assert "<script>alert" not in page and "\x1b" not in page
