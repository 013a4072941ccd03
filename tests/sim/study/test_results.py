"""Rows survive kills, other scenarios and other formats."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tarazu.errors import BadInput
from tarazu.sim.model.outcome import JobOutcome
from tarazu.sim.study.results import Journal, ScenarioRow, encode, read, write_parquet

JOB = JobOutcome("ior", 0.0, 1.5, 7, 9, 0.25, 1.0, 1.125)


def row(case: str, run: int = 1, runs: int = 1, **more: object) -> ScenarioRow:
    made = ScenarioRow(
        case, "s", {"cluster.osts": 10}, "paper", 10, "plain", "lsa", 0, run, runs, jobs=(JOB,)
    )
    return msgspec.structs.replace(made, **more)


def journal(path: Path, *cases: str) -> Journal[ScenarioRow]:
    return Journal(path, {case: place for place, case in enumerate(cases)}, ScenarioRow)


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_a_torn_last_line_is_cut_off_and_computed_again(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "rows.jsonl"
    whole = encode([row("a")])
    path.write_bytes(whole + encode([row("b")])[:kept])
    opened = journal(path, "a", "b")
    assert opened.done == {"a"}
    opened.append([row("b")])
    assert [r.case for r in opened.finish()] == ["a", "b"]
    assert path.read_bytes() == whole + encode([row("b")])


def test_a_case_of_which_runs_are_missing_is_not_done(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(encode([row("a", 1, 2), row("a", 2, 2), row("b", 1, 2)]))
    opened = journal(path, "a", "b")
    assert opened.done == {"a"}
    opened.close()
    assert len(read(path)) == 2


def test_rows_come_out_in_the_canonical_order_whoever_came_first(tmp_path: Path) -> None:
    opened = journal(tmp_path / "rows.jsonl", "a", "b", "c")
    for case in "cab":
        opened.append([row(case, 1, 2), row(case, 2, 2)])
    opened.finish()
    assert [(r.case, r.run) for r in read(tmp_path / "rows.jsonl")] == [(c, n) for c in "abc" for n in (1, 2)]


def test_rows_of_another_scenario_are_set_aside_not_mixed_in_and_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(encode([row("old"), row("a")]))
    opened = journal(path, "a")
    assert opened.done == {"a"} and [r.case for r in opened.set_aside] == ["old"]
    opened.finish()
    assert [r.case for r in read(path)] == ["a"]
    assert [r.case for r in read(tmp_path / "earlier.jsonl")] == ["old"]


def test_garbage_in_the_middle_is_an_error_that_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(encode([row("a")]) + b"garbage\n" + encode([row("b")]))
    with pytest.raises(BadInput, match=r"rows\.jsonl:2: expected a row of a study"):
        journal(path, "a", "b")


@pytest.mark.parametrize("per_ost", [False, True])
def test_parquet_gives_back_every_row(tmp_path: Path, per_ost: bool) -> None:
    pytest.importorskip("pyarrow")
    osts = (
        {"ost_fill": (0.1, 0.7), "ost_done_s": (1 / 3, 0.0), "ost_placed_bytes": (2**53 + 1, 0)}
        if per_ost
        else {}
    )
    rows = [row("a", read_bytes_per_s=1 / 3, **osts), row("b", error="full", jobs=())]
    assert read(write_parquet(rows, tmp_path / "rows.parquet")) == rows
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    with pytest.raises(BadInput, match="expected rows of a study as Parquet"):
        read(tmp_path / "bad.parquet")


def test_parquet_has_a_column_for_each_swept_key(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(write_parquet([row("a")], tmp_path / "rows.parquet"))
    assert table.column("sweep.cluster.osts").to_pylist() == [10]
