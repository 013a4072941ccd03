"""Every daemon that sets something looks at the site's stop file; docs/off-switches.md says what each does then."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tarazu.daemons.programs import programs

ROOT = Path(__file__).parents[2]
SCRIPTS = {name: ROOT.joinpath(*module.split(".")[:-1], "service.py") for name, module in programs().items()}
"""Daemon → where its service is; of those that are here."""
SETS_NOTHING = {"tarazu-ossd": "its rules of routers are mdsd's", "tarazu-page": "it shows"}


def settings_of(path: Path) -> tuple[str, ...]:
    """Its service's `USED`, without the time that importing a daemon takes."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "USED":
            return tuple(ast.literal_eval(node.value))
    raise AssertionError(f"{path}: expected USED")


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_a_daemon_obeys_the_stop_file_or_sets_nothing(name: str) -> None:
    used = settings_of(SCRIPTS[name])
    assert ("run.stop_file" in used) != (name in SETS_NOTHING)
    page = (ROOT / "docs" / "off-switches.md").read_text()
    assert name in SETS_NOTHING or name.removeprefix("tarazu-") in page
