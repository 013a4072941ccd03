"""The study in its shortest form: rows, figures, claims, report, and what the benchmark makes of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu.cli import main
from tarazu.drawing import Picture
from tarazu.errors import BadInput
from tarazu.parts.forwarding import curve_csv
from tarazu.parts.forwarding.curve import CurveSet
from tarazu.parts.forwarding.study import (
    cases,
    claims,
    curve_sets,
    figures,
    pictures,
    policies,
    published,
    study,
)
from tarazu.parts.forwarding.study.cases import ForwardingRow
from tarazu.parts.forwarding.study.summary import Beside, ForwardingSummary, beside, slowdown
from tarazu.sim.study.results import read_lines
from tests.benchmarks.forwarding import study as benchmark

SHORT = ["--short", "--sets", "1", "--jobs", "1", "--json"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the command has written."""
    yield tmp_path_factory.mktemp("study")


def two_pictures(figures: Sequence[figures.Figure]) -> list[Picture]:
    """Lines, and what stands side by side: all of them would take most of this file's time."""
    return pictures.pictures(figures[:2])


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[ForwardingRow]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "pictures", two_pictures)
        assert main(["sim", "forward", "study", "--out", str(folder), *SHORT]) == 0
    return read_lines(folder / "rows.jsonl", ForwardingRow)[0]


def test_every_policy_has_a_row_for_each_set_of_each_kind(rows: list[ForwardingRow]) -> None:
    asked = [row for row in rows if row.told == "truth"]
    assert {(row.kind, row.level) for row in rows} == {
        (k, level) for k in cases.KINDS for level in (0.1, 0.8)
    }
    assert sorted(row.policy for row in asked) == sorted(4 * policies.NAMES)
    informed = {row.policy for row in rows if row.told == "profile"}
    assert informed == set(cases.PROFILE) & set(policies.NAMES)
    assert all(abs(row.load - row.level) <= 0.05 for row in rows)


def test_the_same_command_goes_on_where_it_was_and_says_the_same(
    rows: list[ForwardingRow],
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(case: Any, progress: Any = None) -> list[ForwardingRow]:
        raise AssertionError(f"{case.label} was done before")

    def nothing(figures: Any) -> list[Any]:
        return []

    before = (folder / "figures.json").read_bytes()
    monkeypatch.setattr(cases, "rows", never)
    monkeypatch.setattr(study, "pictures", nothing)
    (tmp_path / "rows.jsonl").write_bytes((folder / "rows.jsonl").read_bytes())
    assert main(["sim", "forward", "study", "--out", str(tmp_path), *SHORT]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(before)
    assert (tmp_path / "figures.json").read_bytes() == before


def test_the_report_has_every_figure_of_the_paper(rows: list[ForwardingRow], folder: Path) -> None:
    page = (folder / "report.html").read_text()
    numbers = [5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18]
    assert [figure.number for figure in figures.figures(ForwardingSummary(rows))] == numbers
    for number in numbers:
        assert f"<h2>Figure {number}: " in page
    for number in numbers[:2]:
        assert (folder / f"figure-{number:02d}.png").read_bytes().startswith(b"\x89PNG")
    for note in (curve_sets.GENERATED, published.NOTE):
        assert escape(note) in page, "whoever sees the figures sees what they rest on"


def test_a_claim_holds_or_not_by_the_rows(rows: list[ForwardingRow]) -> None:
    def worst(rows: list[ForwardingRow]) -> bool:
        found = claims.claims(ForwardingSummary(rows))
        return next(c.holds for c in found if c.kind == "ost" and "MCKP" in c.paper)

    assert worst(rows)
    spoiled = [
        msgspec.structs.replace(row, mean_slowdown=1.0) if row.policy == "mckp" else row for row in rows
    ]
    assert not worst(spoiled)


def test_ours_is_beside_the_best_of_the_others_whichever_that_is(rows: list[ForwardingRow]) -> None:
    """With rows of TA-GNC in the place of ours: at 0.1 it is BBA, which other placements may beat."""
    without = [row for row in rows if row.policy != cases.OURS]
    ours = [msgspec.structs.replace(row, policy=cases.OURS) for row in without if row.policy == "ta-gnc"]
    of = ForwardingSummary([*without, *ours])
    found = beside(of)
    assert len(found) == 8, "two kinds, two levels, curves and families"
    for one in found:
        known = of.papers if one.told == "truth" else [p for p in cases.PROFILE if p != cases.OURS]
        means = [of.mean(one.kind, p, slowdown, one.level, one.told) for p in known]
        static = of.mean(one.kind, "static-gnc", slowdown, one.level)  # needs no curve
        assert one.best_slowdown == min(*means, static)
        assert one.slowdown_ratio >= 1 and one.idletime_ratio >= 1
    assert beside(ForwardingSummary(without)) == []


def test_the_benchmark_fails_where_ours_is_worse_or_a_claim_is_not_as_the_docs_say(
    rows: list[ForwardingRow],
) -> None:
    one = Beside("ost", 0.5, "truth", 1.0, 1.0, "ta-gc", 0.5, 0.5, "ta-gc")
    documented = [
        msgspec.structs.replace(claim, holds=claim.paper not in claims.NOT_HERE[claim.kind])
        for claim in claims.claims(ForwardingSummary(rows))
    ]
    for kind, papers in claims.NOT_HERE.items():
        assert {c.paper for c in documented if c.kind == kind and not c.holds} == papers
    found = study.StudyFindings("curves", 1, tuple(documented), (one,), (), ())

    def holds(of: study.StudyFindings, took_s: float = 1.0) -> bool:
        return all(figure.holds for figure in benchmark.figures(of, took_s, judged=True))

    assert holds(found)
    assert not holds(found, took_s=601.0)
    for at, claim in enumerate(documented):
        other = [
            *documented[:at],
            msgspec.structs.replace(claim, holds=not claim.holds),
            *documented[at + 1 :],
        ]
        assert not holds(msgspec.structs.replace(found, claims=tuple(other)))
    for spoiled in ({"slowdown": 1.02}, {"idletime": 0.51}):
        assert not holds(msgspec.structs.replace(found, beside=(msgspec.structs.replace(one, **spoiled),)))


def test_generated_curves_are_the_second_set_and_no_other_over_osts() -> None:
    kinds = cases.KINDS
    standard, second = (cases.cases(curves, kinds, (0.4,), 1) for curves in (None, "generated"))
    for one, other in zip(standard, second, strict=True):
        assert (one.id == other.id) == (one.kind == "ost")
    assert len(curve_sets.standard("io-node").curves) == 189
    assert curve_sets.standard("ost") == curve_sets.generated("ost")


def test_a_sites_own_curves_take_the_place_of_the_generated_ones(tmp_path: Path) -> None:
    generated = curve_sets.generated("ost")
    mine = tmp_path / "mine.csv"
    mine.write_text(curve_csv.text(CurveSet("", generated.curves[:6])))
    chosen = cases.cases(mine, ("ost",), (0.4,), 1)
    assert chosen[0].id != cases.cases(None, ("ost",), (0.4,), 1)[0].id
    case = msgspec.structs.replace(chosen[0], policies=("bba-gnc", "ta-gnc"))
    found = cases.rows(case)
    assert len(found) == 4 and {row.case for row in found} == {case.id}
    mine.write_text(mine.read_text() + "another,1,5\n")
    assert cases.cases(mine, ("ost",), (0.4,), 1)[0].id != chosen[0].id, "other curves, other rows"


def test_what_a_sites_curves_lack_is_said(tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    rows = ["application,resources,bytes_per_s", "a,1,5", "a,8,9", "b,2,5", "b,4,7", "c,1,5", "c,64,20"]
    mine.write_text("\n".join(rows) + "\n")
    assert cases.note(mine, ("ost",)) == (
        f"curves of {mine}; 1 of 3 without a value for 1: taken to be that for their least number; "
        "1 with numbers above 20, which is all that there are"
    )


def test_a_rate_in_another_unit_does_not_keep_the_study_for_hours(tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text("application,resources,bytes_per_s\na,1,1e9\na,2,2e9\na,4,3000\n")
    with pytest.raises(BadInput, match=r"mine.csv: a: expected .* 1,000 times .* found '3000 and 2e\+09'"):
        cases.cases(mine, ("ost",))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--curves", "mine.csv"], "--curves: expected --kind io-node or --kind ost beside it"),
        (["--curves", "mine.csv", "--kind", "ost"], "mine.csv: expected a CSV of bandwidth curves"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "forward", "study", "--out", str(tmp_path / "out"), *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"tarazu sim forward study: {said}")


def test_what_computes_a_row_is_in_its_cases_id() -> None:
    """All of the room's modules that a case's computation loads; those of ours in ours alone."""
    code = (
        "import sys; from tarazu.parts.forwarding.study import cases\n"
        "print(*(name for name in sys.modules if name.startswith('tarazu.parts.forwarding.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    paths = {name.removeprefix("tarazu.").replace(".", "/") for name in done.stdout.split()}
    paths -= {"parts/forwarding/study", "parts/forwarding/settings"}
    assert len(paths) > 15
    for path in paths:
        parents = [path, *(str(parent) for parent in Path(path).parents)]
        assert any(known.removesuffix(".py") in parents for known in cases.OUR_MODEL), path
        ours = path.startswith("parts/forwarding/joint")
        assert ours != any(known.removesuffix(".py") in parents for known in cases.MODEL), path
    papers, ours = (case for case in cases.cases(None, ("ost",), (0.4,), 1))
    assert ours.policies == (cases.OURS,) and papers.model != ours.model
