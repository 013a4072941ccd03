"""Slurm's lists: jobs come out as they are, and names that look like other jobs' lines make none up."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.batch import jobs
from tarazu.batch.jobs import ApplicationKey, Job
from tarazu.errors import BadInput

ROWS = (
    (
        "10",
        "ann",
        "1000",
        "n[001-003,7]",
        "1795358000",
        "1795358860",
        "1795359000",
        "COMPLETED",
        "long",
        "wrf",
    ),
    ("10.batch", "ann", "1000", "n001", "1795358860", "1795358860", "1795359000", "COMPLETED", "", "batch"),
    ("15", "ann", "1000", "login1", "1795358000", "1795358860", "Unknown", "RUNNING", "long", "a|b"),
    ("12", "bob", "1001", "None assigned", "1795358000", "Unknown", "Unknown", "PENDING", "long", "x"),
    ("13", "", "0", "n2", "1795358000", "1795358860", "1795358900", "CANCELLED by 1000", "long", "x"),
    ("14", "", "987654", "n3", "1795358000", "1795358860", "1795358900", "FAILED", "long", "x"),
    ("16", "bob", "1001", "n[2", "1795358000", "1795358860", "1795358900", "FAILED", "long", "x"),
)


def test_rows_of_sacct() -> None:
    text = "".join("@@".join(row) + "\n" for row in ROWS)
    listed = jobs.answered(text, "@@", "sacct")
    first, second, third, fourth = listed.jobs
    nodes = ("n001", "n002", "n003", "n7")
    times = 1795358860, 1795359000, 1795358000
    assert first == Job("10", "ann", "wrf", nodes, *times, "COMPLETED", "long")
    assert first.application == ApplicationKey("ann", "wrf", 4)
    assert (second.id, second.name, second.end_s) == ("15", "a|b", math.inf)
    assert third.state == "CANCELLED" and (listed.left, "n[2" in listed.why) == (1, True)
    assert (third.user, fourth.user) == ("root", "987654"), "who has no name has his number"


def test_times() -> None:
    assert jobs.seconds("2026-11-22T14:33:14") == pytest.approx(1795358000, abs=15 * 3600 * 24)
    assert jobs.seconds("1795358000") == 1795358000 and jobs.seconds("Unknown") is None
    with pytest.raises(BadInput):
        jobs.seconds("yesterday")


ROW = st.tuples(
    st.integers(1, 1 << 40).map(str),
    st.from_regex(r"[a-z]{1,8}", fullmatch=True),
    st.text(st.sampled_from("ab 0f3a9c|\n\r=é"), max_size=30),
)


@settings(max_examples=25)
@given(st.lists(ROW, max_size=5))
def test_our_own_question_is_not_fooled_by_names(rows: list[tuple[str, str, str]]) -> None:
    separator = "0f3a9c"
    text = "".join(
        separator.join((id, user, "0", "n[1-2]", "5", "6", "7", "COMPLETED", "p", name)) + "\n"
        for id, user, name in rows
    )
    listed = jobs.answered(text, separator, "sacct")
    assert [(j.id, j.user, j.name) for j in listed.jobs] == rows and not listed.left


@settings(max_examples=25)
@given(st.text(max_size=300).map(lambda text: text.replace("0", "|")))
def test_any_text_gives_jobs_or_is_refused(text: str) -> None:
    try:
        listed = jobs.answered(text, "|", "text")
    except BadInput as error:
        assert "text" in str(error)
        return
    for job in listed.jobs:
        assert job.nodes and re.fullmatch(r"\S+", job.id) and job.end_s >= job.start_s
