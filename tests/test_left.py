"""Why files are left to Lustre: one list, and all who say it agree with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from tarazu import left
from tarazu.trace.records import OUTCOMES
from tarazu.wire.messages import Status

ROOT = Path(__file__).parents[1]
CREATE = ROOT / "preload" / "place" / "create.h"


def test_the_placement_library_s_outcomes_are_those_of_the_list() -> None:
    listed = re.search(r"enum tz_outcome \{([^}]*)\}", CREATE.read_text())
    assert listed
    in_c = [name.strip().removeprefix("TZ_").lower() for name in listed[1].split(",")]
    assert in_c == list(OUTCOMES) == list(left.OF_OUTCOME)


def test_every_status_of_a_plan_has_a_word() -> None:
    assert {*get_args(Status)} - {"allocated"} <= {*left.OF_STATUS}


def test_every_word_is_explained() -> None:
    words = {value for name, value in vars(left).items() if name.isupper() and isinstance(value, str)}
    used = {*left.TEXTS.values(), *left.OF_OUTCOME.values(), *left.OF_STATUS.values()} - {""}
    assert used <= {*left.REASONS} <= words
    assert all(len(word.split()) <= 3 for word in left.REASONS)


@pytest.mark.parametrize(
    ("status", "reason", "word"),
    [
        ("declined", "stopped by /etc/tarazu/stop: OST0003 is being replaced", left.DISABLED),
        ("declined", "mdsd is busy: waiting requests: expected 64", left.BUSY),
        ("never", "run.exclude_users names alice", left.EXCLUDED),
        ("never", "file system scratch: expected 8 OSTs or more for one component, found 4", left.IMPOSSIBLE),
        ("later", "file system scratch: expected usable OSTs, found none of 4", left.NO_ROOM),
        ("unavailable", "127.0.0.1:7001: expected an answer within 2 s, found none", left.SILENT),
        ("unavailable", "mdsd: no OSS has reported scratch yet", left.UNKNOWN),
        ("unknown-fs", "expected a file system that an OSS reports (a), found b", left.UNKNOWN),
        ("nothing", "", left.NO_FORECAST),
        (left.LEFT_TO_LUSTRE, left.AS_GOOD, left.NO_GAIN),
        ("a status of tomorrow", "", left.SILENT),
    ],
)
def test_a_plan_s_word(status: str, reason: str, word: str) -> None:
    assert left.of_plan(status, reason) == word


def test_a_word_of_another_version_is_shown_as_it_is() -> None:
    assert left.sentence("no gain").startswith("no gain: Lustre's own allocator")
    assert left.sentence("blue moon") == "blue moon"


def test_every_reason_is_provoked_with_real_daemons() -> None:
    """But one: where Lustre is not mounted nobody leads the program, and there is nothing to say it of."""
    provoked = "".join(path.read_text() for path in sorted((ROOT / "tests" / "loop").glob("test_*.py")))
    named = {value: name for name, value in vars(left).items() if name.isupper() and isinstance(value, str)}
    told = {word: (f'"{word}"', f"{word}: ", f"{named[word]})") for word in left.REASONS}
    missing = [word for word, ways in told.items() if not any(way in provoked for way in ways)]
    assert missing == [left.NOT_LUSTRE]
