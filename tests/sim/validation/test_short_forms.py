"""Short forms of the validations that have no parameters to be wrong about."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tarazu.sim.model.outcome import Outcome
from tarazu.sim.validation import checks, closed_loop, figure22, figure23


@pytest.mark.parametrize("name", ["figure-22", "closed-loop", "large", "same-seed"])
def test_the_short_form_passes(name: str) -> None:
    (check,) = checks.chosen([name])
    done = checks.run(check)
    assert done.rows
    assert done.passed, [row for row in done.rows if not row.passed]


@pytest.mark.long
def test_the_scalability_study_moves_the_volumes_of_table_7_and_others_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    studied = figure23.study(figure23.SHORT, tmp_path)
    monkeypatch.setattr(figure23, "study", lambda changed, folder: studied)
    found = figure23.rows()
    assert {row.name for row in found} > {
        f"figure 23: 160 OSTs, plain, tarazu: {w}" for w in ("read", "written")
    }
    assert all(row.passed for row in found)
    monkeypatch.setattr(figure23, "READ_GB", figure23.READ_GB + 1)
    assert not all(row.passed for row in figure23.rows())


def test_a_cell_that_is_faster_than_the_servers_links_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    real = figure22.outcomes

    def doubled(cell: figure22.Cell, policy: str, seeds: int) -> list[Outcome]:
        return [
            msgspec.structs.replace(outcome, read_bytes_per_s=2 * outcome.read_bytes_per_s)
            for outcome in real(cell, policy, seeds)
        ]

    monkeypatch.setattr(figure22, "outcomes", doubled)
    assert not all(row.passed for row in figure22.rows())


def test_a_policy_that_stays_with_the_slow_ost_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    real = closed_loop.closed_loop

    def exchanged(policy: str, **options: object) -> tuple[closed_loop.PolicyRun, ...]:
        other = "lsa" if policy == "tarazu" else "tarazu"
        return tuple(
            type(run)(**{**{f: getattr(run, f) for f in run.__struct_fields__}, "policy": policy})
            for run in real(other, **options)  # type: ignore[arg-type]
        )

    monkeypatch.setattr(closed_loop, "closed_loop", exchanged)
    assert not all(row.passed for row in closed_loop.rows())
