"""The first sentence: all is well, or what is not, since when, and a command that mends it and exists."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec
import pytest

from tarazu.changes.trail import Event as TrailEvent
from tarazu.cli import command
from tarazu.daemons.changes.here import Listed, ListedAgent
from tarazu.ost_state import Verdict
from tarazu.parts.page import problems
from tarazu.parts.page.markup import plain
from tarazu.parts.page.news import section as news
from tarazu.parts.page.past import Event
from tarazu.parts.page.results import SavedChanges, SavedResult
from tarazu.parts.page.seen import SystemState
from tests.parts.page import sample

NOW_S = sample.NOW_S


def sentence(seen: SystemState) -> str:
    return plain(problems.opening(seen, problems.problems(seen), NOW_S))


def test_all_is_well_in_one_sentence_and_one_colour() -> None:
    seen = sample.seen(sample.well())
    assert sentence(seen) == "All well: 4 OSTs on 2 servers."
    assert 'class="headline good"' in problems.opening(seen, [], NOW_S)
    assert problems.listed([]) == ""


def test_problems_are_counted_and_named_the_gravest_first() -> None:
    seen = sample.system(7, 5)
    assert sentence(seen).startswith(
        "4 problems: scratch-OST000a is dead; scratch-OST0011 is full; scratch-OST0006 is"
    )
    page = problems.listed(problems.problems(seen))
    assert "tarazu change drain --apply --fs scratch --ost 6" in page and "osp state is DISCONN" in page
    assert 'href="osts/scratch-OST000a"' in page


def test_a_server_that_is_silent_is_one_problem_and_not_eight() -> None:
    of = sample.well(2, 8)
    of["osses"]["oss2"].update(stale=True, age_s=600.0)
    for ost in of["file_systems"]["scratch"]["osts"][8:]:
        ost.update(stale=True, usable=False)
    (problem,) = problems.problems(sample.seen(of))
    assert plain(problem.what) == "oss2 is silent" and problem.since_s == NOW_S - 600
    assert (problem.where, problem.command) == ("oss2", "systemctl restart tarazu-ossd")
    # The MDS has lost them, too: still one.
    of["file_systems"]["scratch"]["health"] = {
        str(i): {"health": "dead", "why": "DISCONN"} for i in range(8, 16)
    }
    for ost in of["file_systems"]["scratch"]["osts"][8:]:
        ost["health"] = "dead: DISCONN"
    (problem,) = problems.problems(sample.seen(of))
    assert plain(problem.what) == "oss2 is silent, and 8 OSTs of it dead"


def test_many_osts_of_a_server_with_the_same_reason_are_one_problem() -> None:
    of = sample.well(1, 6)
    for ost in of["file_systems"]["scratch"]["osts"]:
        ost.update(degraded=True)
    (problem,) = problems.problems(sample.seen(of))
    assert plain(problem.what) == "6 OSTs of oss1 are degraded"
    assert problem.command.endswith("--fs scratch --ost 0,1,2,3,4,5")


def test_an_mdsd_that_is_away_is_the_first_sentence_with_since_when() -> None:
    of = sample.system(7, 5)
    away = msgspec.structs.replace(of, problem="no answer in 5 s", since_s=NOW_S - 600)
    assert sentence(away) == (
        "mdsd has not answered since 2025-11-22 08:16:40 UTC (10 min): no answer in 5 s. "
        "What follows is of 2025-11-22 08:26:40 UTC. Then there were 4 problems."
    )
    assert "Nothing is known yet" in sentence(SystemState(problem="refused", since_s=NOW_S))
    assert problems.problems(away)[0].command == "systemctl restart tarazu-mdsd"


def test_the_site_s_stop_a_closed_gate_no_server_and_a_full_disk_are_problems() -> None:
    of = {
        **sample.well(),
        "stopped": "by root: maintenance",
        "gate": {"open": False, "why_closed": "CPU at 0.97"},
    }
    seen = msgspec.structs.replace(sample.seen(of), no_history="the disk is full")
    found = [(plain(p.what), p.why, p.command) for p in problems.problems(seen)]
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
    agent = ListedAgent(
        name="pools", unit="", directory="", mode="", held="", changes=(failed,), problem="", is_others=False
    )
    seen = msgspec.structs.replace(sample.seen(sample.well()), here=(agent,))
    (problem,) = problems.problems(seen)
    assert (plain(problem.what), problem.command) == ("pool good: failed", "tarazu change show ab12")
    of_mgs = SavedResult("mgs", NOW_S, 9, changes=SavedChanges((failed,)))
    (problem,) = problems.problems(sample.seen(sample.well()), [of_mgs])
    assert problem.where == "mgs"


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
        where, line, note = problems.mend(one)
        assert where and note
        program, *words = shlex.split(line)
        assert program in ("tarazu", "lctl", "dmesg", "systemctl")
        assert "$(reboot)" not in line or shlex.quote(fs_name)[:-1] in line or f"'{fs_name[:9]}" in line
        if program == "tarazu":
            chosen = command(words[0], words[1:]).parse_args(words[1:])
            assert getattr(chosen, "fs", fs_name) == fs_name


def test_news_are_one_line_for_each_name_however_often_it_came_and_went() -> None:
    seen = sample.system(7, 5)
    name = "scratch-OST0003"
    events = [
        Event(
            "OST", name, int(NOW_S) - 500 + number, *(("ok", "slow") if number % 2 == 0 else ("slow", "ok"))
        )
        for number in range(6)
    ]
    events += [
        Event("server", "oss4", int(NOW_S) - 90, "heard", "silent"),
        Event("server", "oss9", int(NOW_S) - 80, "", "heard"),
        Event("mdsd", "mdsd", int(NOW_S) - 70, "silent", "answers"),
        Event("OST", "scratch-OST0fff", int(NOW_S) - 60, "ok", "gone"),
    ]
    page = plain(news(seen, events, [], NOW_S))
    assert f"{name} is well again; it was slow (3 times)" in page and page.count(name) == 1
    for said in ("oss4 fell silent", "oss9 is new", "mdsd answers again", "scratch-OST0fff is gone"):
        assert said in page


def test_what_was_set_and_taken_back_since_yesterday_is_news() -> None:
    seen = sample.seen(sample.well())
    of_all = {"agent": "parameters", "lever": "nrs", "target": "ost_io"}
    listed = Listed(
        **of_all, id="cd34", state="set", wanted={"": "crrn 8"}, since_s=NOW_S - 60, why="measured"
    )
    old = Listed(**of_all, id="ef56", state="set", wanted={"": "orr"}, since_s=NOW_S - 3 * 86400)
    agent = ListedAgent(
        name="p", unit="", directory="", mode="", held="", changes=(listed, old), problem="", is_others=False
    )
    trail = (
        TrailEvent(
            time="2025-11-22T08:00:00Z", event="restored", **of_all, id="ab12", wanted={"": "tbf"}, by="root"
        ),
        TrailEvent(time="2025-11-19T08:00:00Z", event="set", **of_all, id="gh78"),
        TrailEvent(time="nonsense", event="set", **of_all),
    )
    seen = msgspec.structs.replace(seen, here=(agent,), trail=trail, started_s=NOW_S - 30)
    page = plain(news(seen, [], [], NOW_S))
    assert "nrs ost_io (tbf) was taken back" in page and "nrs ost_io: set: crrn 8" in page
    assert "orr" not in page and "tarazu-page was started" in page and "tarazu change log there" in page


def test_a_day_without_news_says_so(tmp_path: Path) -> None:
    assert "Nothing that this page has seen." in plain(news(sample.seen(sample.well()), [], [], NOW_S))
