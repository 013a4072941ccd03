"""What a node says that has not all of the part."""

from __future__ import annotations

import sys

import pytest

from tarazu.cli import main

PART = "the package tarazu-analysis, or pip install '.[sim,bursts]' in a clone"


def test_a_verb_that_is_not_installed_says_so_and_the_others_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tarazu.parts.bursts.commands.report", None)
    assert main(["change", "bursts", "report", "--json", "--days", "7"]) == 2
    name = "change bursts report"
    assert (
        capsys.readouterr().err
        == f"tarazu {name}: expected {PART}; found no tarazu.parts.bursts.commands.report\n"
    )
    assert main(["change", "bursts", "plugin", "library"]) == 0
    assert "return tarazu" in capsys.readouterr().out
