"""Slurm's lists: jobs come out as they are, and names that look like other jobs' lines make none up."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.batch import jobs
from tarazu.batch.jobs import ApplicationKey, Job
from tarazu.errors import BadInput

SACCT = """\
JobID|JobIDRaw|JobName|User|NodeList|Submit|Start|End|State|Partition
10|10|wrf|ann|n[001-003,7]|1795358000|1795358860|1795359000|COMPLETED|long
10.batch|10.batch|batch|ann|n001|1795358860|1795358860|1795359000|COMPLETED|
11_4|15|a|b|ann|login1|1795358000|1795358860|Unknown|RUNNING|long
12|12|x|bob|None assigned|1795358000|Unknown|Unknown|PENDING|long
13|13|x|bob|n2|1795358000|1795358860|1795358900|CANCELLED by 1000|long
14|14|x|bob|n[2|1795358000|1795358860|1795358900|FAILED|long
"""
SCONTROL = (
    "JobId=1 JobName=evil|na me\n"
    "JobId=9 x UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4 JobState=RUNNING\n"
    "JobId=3 ArrayJobId=2 ArrayTaskId=1 JobName=two words UserId=ann(1000) GroupId=ann(1000) MCS_label=N/A "
    "JobState=COMPLETED SubmitTime=1795358861 StartTime=1795358863 EndTime=1795358963 Partition=test "
    "ReqNodeList=(null) NodeList=n[1-2] BatchHost=n1 Comment=c NodeList=n9 EndTime=0 \n"
    "JobId=4 JobName=a UserId=root(0) GroupId=root(0) MCS_label=N/A UserId=ann(1000) GroupId=ann(1000) MCS_label=N/A "
    "JobState=RUNNING SubmitTime=1 StartTime=1 EndTime=Unknown Partition=test NodeList=n1\n"
)


def test_sacct(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    path.write_text(SACCT)
    listed = jobs.read(path)
    first, second, third = listed.jobs
    assert first == Job(
        "10",
        "ann",
        "wrf",
        ("n001", "n002", "n003", "n7"),
        1795358860,
        1795359000,
        1795358000,
        "COMPLETED",
        "long",
    )
    assert first.application == ApplicationKey("ann", "wrf", 4)
    assert (second.id, second.name, second.end_s) == ("15", "a|b", math.inf)
    assert third.state == "CANCELLED" and (listed.left, "n[2" in listed.why) == (1, True)


def test_scontrol_and_names_that_look_like_lines() -> None:
    listed = jobs.parse(SCONTROL.splitlines(keepends=True), "scontrol")
    assert [(j.id, j.user, j.name, j.nodes, j.end_s) for j in listed.jobs] == [
        ("3", "ann", "two words", ("n1", "n2"), 1795358963)
    ]
    assert listed.left == 3


def test_a_user_without_a_name_has_his_number() -> None:
    text = "JobIDRaw|User|UID|JobName|NodeList|Start|End\n1||0|a|n1|1|2\n2||987654|a|n1|1|2\n3||x|a|n1|1|2\n"
    listed = jobs.parse(text.splitlines(keepends=True), "text")
    assert [job.user for job in listed.jobs] == ["root", "987654", "x"]


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
@given(st.text(max_size=300).map(lambda text: text.replace("0", "|")), st.booleans())
def test_any_text_gives_jobs_or_is_refused(text: str, headed: bool) -> None:
    lines = (SACCT[: SACCT.index("\n") + 1] if headed else "") + text
    try:
        listed = jobs.parse(lines.splitlines(keepends=True), "text")
    except BadInput:
        assert not headed
        return
    for job in listed.jobs:
        assert job.nodes and re.fullmatch(r"\S+", job.id) and job.end_s >= job.start_s
    try:
        jobs.answered(text, "|", "text")
    except BadInput as error:
        assert "text" in str(error)
