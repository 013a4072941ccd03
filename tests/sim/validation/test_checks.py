"""The list of validations: every entry can be run, wrong names are told, what is missing here is said."""

from __future__ import annotations

from importlib import import_module

import pytest

from tarazu.errors import BadInput, Unavailable
from tarazu.sim.validation import badost, checks, same_seed


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.name)
def test_every_entry_has_its_module(check: checks.Check) -> None:
    assert callable(import_module(f"tarazu.sim.validation.{check.module}").rows)


def test_an_unknown_name_is_told() -> None:
    with pytest.raises(BadInput, match=r"table-6.*found 'table 6'"):
        checks.chosen(["table 6"])


def test_what_cannot_be_run_here_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(full: bool, progress: object) -> tuple[()]:
        raise Unavailable("no sample here")

    monkeypatch.setattr(badost, "rows", rows)
    (check,) = checks.chosen(["badost"])
    done = checks.run(check)
    assert done.rows == ()
    assert done.unavailable == "no sample here"


def test_a_result_that_differs_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(range(100))
    monkeypatch.setattr(same_seed, "digest", lambda policy, seed: str(next(drawn)))
    monkeypatch.setattr(same_seed, "_elsewhere", lambda policy, seed: "other")
    assert not all(row.passed for row in same_seed.rows())
