"""The first sentence: all is well, or what is not, since when, and a command that mends it and exists."""

from __future__ import annotations

import shlex

import msgspec
import pytest

from tarazu.cli import command
from tarazu.ost_state import Verdict
from tarazu.parts.changes.here import Listed
from tarazu.parts.page.problems import mend, opening, problems
from tarazu.parts.page.seen import SystemState
from tests.parts.page import sample

NOW_S = sample.NOW_S


def sentence(seen: SystemState) -> str:
    return opening(seen, problems(seen), NOW_S)


def test_all_is_well_in_one_sentence_and_one_colour() -> None:
    seen = sample.seen(sample.well())
    assert sentence(seen) == "All well: 4 OSTs on 2 servers."
    assert problems(seen) == []


def test_problems_are_counted_and_named_the_gravest_first() -> None:
    seen = sample.system(7, 5)
    assert sentence(seen).startswith(
        "4 problems: scratch-OST000a is dead; scratch-OST0011 is full; scratch-OST0006 is"
    )
    dead, _, sick, _ = problems(seen)
    assert (dead.ost, dead.oss, dead.why) == ("scratch-OST000a", "oss3", "osp state is DISCONN")
    assert sick.command == "tarazu change drain --apply --fs scratch --ost 6"


def test_a_server_that_is_silent_is_one_problem_and_not_eight() -> None:
    of = sample.well(2, 8)
    of["osses"]["oss2"].update(stale=True, age_s=600.0)
    for ost in of["file_systems"]["scratch"]["osts"][8:]:
        ost.update(stale=True, usable=False)
    (problem,) = problems(sample.seen(of))
    assert problem.what == "oss2 is silent" and problem.since_s == NOW_S - 600
    assert (problem.where, problem.command) == ("oss2", "systemctl restart tarazu-ossd")
    # The MDS has lost them, too: still one.
    of["file_systems"]["scratch"]["health"] = {
        str(i): {"health": "dead", "why": "DISCONN"} for i in range(8, 16)
    }
    for ost in of["file_systems"]["scratch"]["osts"][8:]:
        ost["health"] = "dead: DISCONN"
    (problem,) = problems(sample.seen(of))
    assert problem.what == "oss2 is silent, and 8 OSTs of it dead"


def test_many_osts_of_a_server_with_the_same_reason_are_one_problem() -> None:
    of = sample.well(1, 6)
    for ost in of["file_systems"]["scratch"]["osts"]:
        ost.update(degraded=True)
    (problem,) = problems(sample.seen(of))
    assert problem.what == "6 OSTs of oss1 are degraded"
    assert problem.command.endswith("--fs scratch --ost 0,1,2,3,4,5")


def test_an_mdsd_that_is_away_is_the_first_sentence_with_since_when() -> None:
    of = sample.system(7, 5)
    away = msgspec.structs.replace(of, problem="no answer in 5 s", since_s=NOW_S - 600)
    assert sentence(away) == "mdsd has not answered for 10 min: no answer in 5 s. What follows is of 0 s ago."
    assert "Nothing is known yet" in sentence(SystemState(problem="refused", since_s=NOW_S))
    assert problems(away)[0].command == "systemctl restart tarazu-mdsd"


def test_the_site_s_stop_a_closed_gate_no_server_and_a_full_disk_are_problems() -> None:
    of = {
        **sample.well(),
        "stopped": "by root: maintenance",
        "gate": {"open": False, "why_closed": "CPU at 0.97"},
    }
    seen = msgspec.structs.replace(sample.seen(of), no_history="the disk is full")
    found = [(p.what, p.why, p.command) for p in problems(seen)]
    assert found == [
        ("tarazu is switched off on the whole site", "by root: maintenance", "tarazu enable --site"),
        ("mdsd places no files now", "CPU at 0.97", "tarazu status"),
        ("this page keeps no history", "the disk is full", "journalctl -u tarazu-page"),
    ]
    nobody = {**sample.well(), "osses": {}, "file_systems": {}}
    assert sentence(sample.seen(nobody)) == "1 problem: mdsd has heard no server yet."


def test_a_change_that_failed_is_a_problem() -> None:
    failed = Listed(
        agent="pools", id="ab12", lever="pool", target="good", state="failed", why_not="lctl is silent"
    )
    (problem,) = problems(sample.seen(sample.well()), [("mgs", failed)])
    assert (problem.what, problem.command, problem.where) == (
        "pool good: failed",
        "tarazu change show ab12",
        "mgs",
    )


@pytest.mark.parametrize("verdict", [v for v in Verdict if v.amiss])
@pytest.mark.parametrize("fs_name", ["scratch", "$(reboot) '"])
def test_each_verdict_has_a_command_that_tarazu_takes(verdict: Verdict, fs_name: str) -> None:
    (target, *_) = sample.seen(sample.status(1, 1)).overview.targets  # type: ignore[union-attr]
    kinds = (
        [{"no_create": True}, {"readonly": True}, {"active": False}, {}]
        if verdict is Verdict.REFUSING
        else [{}]
    )
    for of in kinds:
        one = msgspec.structs.replace(target, fs_name=fs_name, verdict=verdict, **of)
        where, line, note = mend(one)
        assert where and note
        program, *words = shlex.split(line)
        assert program in ("tarazu", "lctl", "dmesg", "systemctl")
        assert "$(reboot)" not in line or shlex.quote(fs_name)[:-1] in line or f"'{fs_name[:9]}" in line
        if program == "tarazu":
            chosen = command(words[0], words[1:]).parse_args(words[1:])
            assert getattr(chosen, "fs", fs_name) == fs_name
