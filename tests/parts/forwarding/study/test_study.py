"""The study in its shortest form: rows, figures, claims, and what the benchmark makes of it."""

from __future__ import annotations

from itertools import islice, product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu.cli import main
from tarazu.errors import BadInput
from tarazu.parts.forwarding.study import (
    cases,
    claims,
    curve_sets,
    figures,
    schedulers,
    study,
)
from tarazu.parts.forwarding.study.cases import ForwardingRow
from tarazu.parts.forwarding.study.summary import METRICS, ForwardingSummary, beside
from tarazu.sim.study.results import read_lines
from tests.benchmarks.forwarding.study import NOT_HERE

ALL = figures.figures
SHORT = ["--short", "--jobs", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the command writes."""
    return tmp_path_factory.mktemp("study")


def two_figures(of: ForwardingSummary) -> list[figures.Figure]:
    """Lines, and what stands side by side: all of them would take most of this file's time."""
    return list(islice(ALL(of), 2))


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[ForwardingRow]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "figures", two_figures)
        assert main(["sim", "forward", "study", "--out", str(folder), *SHORT]) == 0
    return read_lines(folder / "rows.jsonl", ForwardingRow)[0]


def test_every_policy_has_a_row_for_each_set_of_each_kind(rows: list[ForwardingRow]) -> None:
    assert {(r.kind, r.level) for r in rows} == set(product(cases.KINDS, study.SHORT_LEVELS))
    asked = [row.policy for row in rows if row.told == "truth"]
    assert sorted(asked) == sorted(4 * study.SHORT_SETS * schedulers.NAMES)
    assert {row.policy for row in rows if row.told == "profile"} == set(cases.PROFILE)
    assert all(abs(row.load - row.level) <= 0.05 for row in rows)


def test_the_same_command_goes_on_where_it_was_and_says_the_same(
    rows: list[ForwardingRow], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(case: Any, progress: Any = None) -> list[ForwardingRow]:
        raise AssertionError(f"{case.label} was done before")

    monkeypatch.setattr(cases, "rows", never)
    monkeypatch.setattr(study, "draw", lambda of, folder: None)
    (tmp_path / "rows.jsonl").write_bytes((folder / "rows.jsonl").read_bytes())
    assert main(["sim", "forward", "study", "--out", str(tmp_path), *SHORT]) == 0
    assert (tmp_path / "claims.json").read_bytes() == (folder / "claims.json").read_bytes()


def test_every_figure_of_the_paper_is_there(rows: list[ForwardingRow], folder: Path) -> None:
    numbers = [figure.number for figure in figures.figures(ForwardingSummary(rows))]
    assert sorted(numbers) == [5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18]
    for number in numbers[:2]:
        assert (folder / f"figure-{number:02d}.png").read_bytes().startswith(b"\x89PNG")


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
    assert len(found) == 16, "two kinds, two levels, two metrics, curves and families"
    for one in found:
        known = of.papers if one.told == "truth" else [p for p in cases.PROFILE if p != cases.OURS]
        metric = METRICS[one.metric]
        means = [of.mean(one.kind, p, metric, one.level, one.told) for p in known]
        static = of.mean(one.kind, "static-gnc", metric, one.level)  # needs no curve
        assert one.best == min(*means, static) and one.ratio >= 1
    assert beside(ForwardingSummary(without)) == []


def test_the_docs_say_of_claims_that_there_are_that_they_do_not_hold(rows: list[ForwardingRow]) -> None:
    there = claims.claims(ForwardingSummary(rows))
    for kind, papers in NOT_HERE.items():
        assert papers <= {claim.paper for claim in there if claim.kind == kind}


def test_generated_curves_are_the_second_set_and_no_other_over_osts() -> None:
    kinds = cases.KINDS
    standard, second = (cases.cases(curves, kinds, (0.4,), 1) for curves in (None, "generated"))
    for one, other in zip(standard, second, strict=True):
        assert (one.id == other.id) == (one.kind == "ost")
    assert len(curve_sets.standard("io-node")) == 189


def test_a_sites_own_curves_take_the_place_of_the_generated_ones(tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    rows = [f"app{a},{n},{n**0.1 * a}" for a in range(1, 5) for n in (1, 2, 4)]
    mine.write_text("\n".join(["application,resources,bytes_per_s", *rows, ""]))
    chosen = cases.cases(mine, ("ost",), (0.4,), 1)
    assert chosen[0].id != cases.cases(None, ("ost",), (0.4,), 1)[0].id
    case = msgspec.structs.replace(chosen[0], policies=("bba-gnc", "ta-gnc"))
    found = cases.rows(case)
    assert len(found) == 4 and {row.case for row in found} == {case.id}
    mine.write_text(mine.read_text() + "another,1,5\n")
    assert cases.cases(mine, ("ost",), (0.4,), 1)[0].id != chosen[0].id, "other curves, other rows"


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
