"""Files of results: what the commands print is shown, whatever else lies there is not, or says why."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tarazu.parts.changes.here import Listed
from tarazu.parts.changes.model.outcome import Gave
from tarazu.parts.page import results as shown
from tarazu.parts.page.results import Results
from tarazu.parts.page.seen import SystemState
from tests.parts.page import sample
from tests.parts.page.sample import HOSTILE

REPORT = {
    "wanted": {"since_s": 1.0, "until_s": 2.0},
    "applications": [{"application": "ior", "fs_name": "scratch", "runs": 4, "lustre_cost": 1.5, "tarazu_cost": None}],
    "reasons": [{"why": "below layout.min_size", "runs": 2, "files": 9, "bytes": 9}],
}  # fmt: skip


def put(directory: Path, name: str, value: object, at_s: float = 1e9) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    (directory / name).write_text(text, errors="surrogatepass")
    os.utime(directory / name, (at_s, at_s))


def changes() -> dict:
    """As `tarazu change list --json` prints them."""
    gave = Gave("time", 2.0, 1.0, 2.1, 1.2, 5, "better")
    of_all = {"agent": "parameters", "lever": "nrs", "target": ""}
    listed = [
        Listed(**of_all, id="ab12cd34", state="set", wanted={"": "crrn 8"}, before={"a": "fifo"}, gave=gave),
        Listed(**of_all, state="cannot mend", why=HOSTILE),
        Listed(**of_all, state="gone"),
    ]
    return msgspec.to_builtins({"agents": [], "changes": listed})


def page(directory: Path, path: str) -> str:
    with sample.served(SystemState(), directory) as (_, pages):
        body = pages.get(path)
    assert body is not None
    return body.plain.decode()


def test_changes_of_another_node_are_shown_what_is_amiss_first(tmp_path: Path) -> None:
    put(tmp_path, "oss1.json", changes())
    (oss1,) = Results(str(tmp_path)).all()
    assert oss1.problem == "" and len(oss1.changes) == 3
    found = page(tmp_path, "/")
    assert "crrn 8 (was fifo)" in found and "was 2.1, is 1.2 over 5 hours: better" in found
    assert found.index("cannot mend") < found.index("crrn 8") and "<script>alert" not in found
    put(tmp_path, "oss1.json", {"changes": [{"state": "unheard of"}]}, 2e9)
    assert "a command prints with --json" in page(tmp_path, "/results/oss1")


def test_a_report_is_shown_as_tables_and_as_it_is(tmp_path: Path) -> None:
    put(tmp_path, "week.json", REPORT)
    put(tmp_path, "list.json", [{"log": "a.darshan"}], 2e9)
    assert [of.name for of in Results(str(tmp_path)).all()] == ["list", "week"]
    found = page(tmp_path, "/results/week")
    assert "<td>ior</td>" in found and "<td>1.5</td>" in found and "<td>below layout.min_size</td>" in found
    assert "<td>a.darshan</td>" in page(tmp_path, "/results/list")
    assert json.loads(page(tmp_path, "/results/week.json")) == REPORT


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.sampled_from(["<b>", "\ud800", "", 1.5, float("nan"), 10**400])
        | st.sampled_from([REPORT]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["changes", "items", "applications", "x"]), inner)
        ),
        max_leaves=8,
    )
)
@example("\ud800")
@example({"items": [{"get": 1}, {"x": 2}]})
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_file_holds_it_costs_no_page(tmp_path: Path, value: object) -> None:
    put(tmp_path, "x.json", value)
    assert page(tmp_path, "/results/x").startswith("<!doctype html>")


def test_what_is_none_says_why_and_what_is_no_file_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("[]")
    (tmp_path / "link.json").symlink_to(tmp_path / "secret")
    (tmp_path / "directory.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    for name, value in {
        "broken.json": "{", "number.json": "1", "deep.json": "[" * 50_000, "other.json": {"a": 1},
        ".hidden.json": REPORT, "no-suffix": REPORT, "a b.json": REPORT,
    }.items():  # fmt: skip
        put(tmp_path, name, value)
    monkeypatch.setattr(shown, "BYTES", 60_000)
    put(tmp_path, "huge.json", "[" + " " * 60_000 + "]")
    results = Results(str(tmp_path))
    found = {of.name: of.problem for of in results.all()}
    assert sorted(found) == ["broken", "deep", "huge", "number", "other"]
    assert found.pop("other") == "" and all(found.values())
    assert [results.raw(name) for name in ("link", "pipe", "../secret", "secret", "no")] == [None] * 5
    assert Results(str(tmp_path / "nowhere")).all() == [] == Results("").all()


def test_of_many_the_newest_are_shown(tmp_path: Path) -> None:
    for number in range(shown.FILES + 5):
        put(tmp_path, f"r{number}.json", "[]", 1e9 + number)
    names = [of.name for of in Results(str(tmp_path)).all()]
    assert len(names) == shown.FILES and names[0] == f"r{shown.FILES + 4}"


def test_names_in_them_are_text_and_what_is_long_is_cut(tmp_path: Path) -> None:
    row = dict.fromkeys([HOSTILE, *map(str, range(100))], HOSTILE * 10)
    put(tmp_path, "r.json", {HOSTILE: [row] * 300, "b": HOSTILE})
    found = page(tmp_path, "/results/r")
    assert "&lt;script&gt;alert(1)" in found and "<script>alert" not in found and "\x1b" not in found
    assert len(found) < 4_000_000 and found.count("<td>") == 200 * 20
