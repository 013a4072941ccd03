"""Slurm's nodes and queue as its commands print them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.batch.jobs import Waiting, waiting
from tarazu.batch.nodes import partitions
from tarazu.errors import BadInput

SINFO = """\
test*|allocated|8,8:1:1,64,0,(null),1|tz0|n[1,5,9,13]
test*|idle|8,8:1:1,64,0,(null),1|big,tz3|n[4,8]
test*|planned|8,8:1:1,64,0,(null),1|tz3|n12
test*|idle*|8,8:1:1,64,0,(null),1|tz3|n16
gpu|idle|8,8:1:1,64,0,gpu:2,1|(null)|g1
gpu|idle|8,8:1:1,128,0,gpu:2,1|(null)|g2
"""
"""Slurm 22.05.8, with other nodes."""


def test_what_is_idle_alike_and_in_which_slot() -> None:
    found, default = partitions(SINFO)
    assert default == "test" and found["test"].idle == {"n4", "n8"} and found["test"].kinds == 1
    assert found["test"].slots == {"tz0": {"n1", "n5", "n9", "n13"}, "tz3": {"n4", "n8", "n12", "n16"}}
    assert (found["gpu"].kinds, found["gpu"].slots, len(found["gpu"].idle)) == (2, {}, 2)
    for wrong in ("a|b", "p|idle|k|f|n[1-", "p|idle|k|f|n[9-1]"):
        with pytest.raises(BadInput, match="sinfo:1"):
            partitions(wrong)


LINE = "21|root|4|test|PENDING|1795361574|Resources|n[1,5,9,13]||(null)|(null)|wrap"


def line(text: str, word: str = "@@") -> str:
    """As squeue prints it, the columns of `text` with `/` for what is in them."""
    return f"{text.replace('|', word)}\n".replace("/", "|")


def test_a_job_is_read_with_what_its_user_said() -> None:
    (one,) = waiting(line(LINE), "@@")
    assert one == Waiting(
        "21", "root", 4, "test", "PENDING", 1795361574.0, "Resources", "n[1,5,9,13]", False, "wrap"
    )
    assert one.pending and one.plain
    for other in ("n1|n2|(null)|(null)|x", "|(null)|tz1|(null)|x", "(null)||(null)|res|x"):
        (one,) = waiting(line(f"21_[1-4]|ann|4|test|RUNNING|7|None|{other}"), "@@")
        assert one.own == ("n1|" not in other or "n2" in other) and not one.plain and not one.pending
    for wrong in ("21|root|4", LINE.replace("|4|", "|x|"), LINE.replace("|4|", "|4444444444|")):
        with pytest.raises(BadInput, match="squeue"):
            waiting(line(wrong), "@@")


def test_a_job_with_alternative_features_had_another_name() -> None:
    (one,) = waiting(line("21|ann|4|test|RUNNING|7|None||(null)|tz0/tz1|(null)|io"), "@@")
    assert (one.name, one.own) == ("io", True)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("ax|\n\r0é", max_size=12), max_size=3))
def test_a_name_is_no_other_job(names: list[str]) -> None:
    """Whatever it holds: it cannot hold a word that is new each time."""
    word = "ffff0000"
    names = [name for name in names if word not in name] + [f"x\n{LINE}"]
    text = "".join(
        line(f"{i}|ann|4|test|PENDING|7|None||||(null)|", word)[:-1] + f"{name}\n"
        for i, name in enumerate(names)
    )
    found = waiting(text, word)
    assert [job.id for job in found] == [str(i) for i in range(len(names))]
    assert [job.name for job in found] == names
