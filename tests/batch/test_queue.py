"""Slurm's nodes and queue as its commands print them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.batch.jobs import Waiting, waiting
from tarazu.batch.nodes import partitions
from tarazu.errors import BadInput

SINFO = """\
test*|allocated|8,8:1:1,64,0,(null),1|n[1,5,9,13]
test*|idle|8,8:1:1,64,0,(null),1|n[4,8]
test*|planned|8,8:1:1,64,0,(null),1|n12
test*|idle*|8,8:1:1,64,0,(null),1|n16
gpu|idle|8,8:1:1,64,0,gpu:2,1|g1
gpu|idle|8,8:1:1,128,0,gpu:2,1|g2
"""
"""Slurm 22.05.8, with other nodes."""


def test_what_is_idle_and_alike() -> None:
    found, default = partitions(SINFO)
    assert default == "test" and found["test"].idle == {"n4", "n8"} and found["test"].kinds == 1
    assert (found["gpu"].kinds, len(found["gpu"].idle)) == (2, 2)
    for wrong in ("a|b", "p|idle|k|n[1-", "p|idle|k|n[9-1]"):
        with pytest.raises(BadInput, match="sinfo:1"):
            partitions(wrong)


LINE = "21|root|4|test|PENDING|1795361574|Resources|n[1,5,9,13]|wrap"


def line(text: str, word: str = "@@") -> str:
    """As squeue prints it, the columns of `text` with `/` for what is in them."""
    return f"{text.replace('|', word)}\n".replace("/", "|")


def test_a_job_is_read_with_what_its_user_said() -> None:
    (one,) = waiting(line(LINE), "@@")
    assert one == Waiting(
        "21", "root", 4, "test", "PENDING", 1795361574.0, "Resources", "n[1,5,9,13]", "wrap"
    )
    assert one.pending
    (one,) = waiting(line("21_[1-4]|ann|4|test|RUNNING|7|None|(null)|x"), "@@")
    assert not one.asked and not one.pending
    for wrong in ("21|root|4", LINE.replace("|4|", "|x|"), LINE.replace("|4|", "|4444444444|")):
        with pytest.raises(BadInput, match="squeue"):
            waiting(line(wrong), "@@")


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("ax|\n\r0é", max_size=12), max_size=3))
def test_a_name_is_no_other_job(names: list[str]) -> None:
    """Whatever it holds: it cannot hold a word that is new each time."""
    word = "ffff0000"
    names = [name for name in names if word not in name] + [f"x\n{LINE}"]
    text = "".join(
        line(f"{i}|ann|4|test|PENDING|7|None||", word)[:-1] + f"{name}\n" for i, name in enumerate(names)
    )
    found = waiting(text, word)
    assert [job.id for job in found] == [str(i) for i in range(len(names))]
    assert [job.name for job in found] == names
