"""`make check`: which tests a change of one room has."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from tests import check

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("tarazu/units.py", "test_units.py"),
        ("tarazu/wire/messages.py", "wire/test_messages.py"),
        ("tarazu/cli/job/show.py", "cli/job/test_show.py"),
        ("tarazu/daemons/changes/engine.py", "daemons/changes/test_engine.py"),
        ("tests/stats/test_parsers.py", "stats/test_parsers.py"),
        ("preload/hooks/open.c", "preload"),
        ("docs/page.md", "docs"),
    ],
)
def test_a_changed_file_has_the_tests_of_its_room(changed: str, expected: str) -> None:
    found = set(check.tests_of(PurePosixPath(changed)))
    assert expected in found and all((ROOT / "tests" / name).exists() for name in found)


def test_every_room_has_tests() -> None:
    rooms = {path.parent for path in (ROOT / "tarazu").rglob("*.py") if path.name != "__init__.py"}
    without = [
        room.name
        for room in rooms
        if not any(check.tests_of(PurePosixPath(str(file.relative_to(ROOT)))) for file in room.glob("*.py"))
    ]
    assert without == []


def test_a_change_of_no_room_has_none() -> None:
    assert not list(check.tests_of(PurePosixPath("LICENSE")))
