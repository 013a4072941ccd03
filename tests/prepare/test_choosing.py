"""Which default layout a job's directory gets: away from what is amiss, never one that refuses files by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu import config
from tarazu.changes.change import Change
from tarazu.changes.goals import refusal
from tarazu.daemons.changes.agents.layouts import Layouts
from tarazu.lustre import EOF
from tarazu.model import Component, Layout, Ost
from tarazu.ost_state import AVOIDED, UNKNOWN, OstState, Verdict, judge
from tarazu.prepare.choosing import DirectoryChoice, Expected, choose
from tarazu.prepare.directories import words_of
from tarazu.prepare.scoring import scores
from tarazu.units import GIB, MIB

PLAIN = Layout((Component(0, EOF, 4 * MIB, 1),))
PFL = Layout((Component(0, 128 * MIB, 4 * MIB, 1), Component(128 * MIB, EOF, 4 * MIB, 4)), composite=True)
MANY = Expected(64, 64 * GIB)


def targets(osts: int, speed: float = 0.1, **verdicts: str) -> list[Ost]:
    named = {int(name[1:]): verdict for name, verdict in verdicts.items()}
    return [
        Ost(
            i, "oss1", 1000 * GIB, 900 * GIB, 900 * GIB,
            relative_speed=speed if named.get(i) == "sick" else 1.0, state=OstState(Verdict(named.get(i, "ok"))),
        )
        for i in range(osts)
    ]  # fmt: skip


def words(choice: DirectoryChoice) -> str:
    start = choice.method == "start"
    return words_of(choice.layout, choice.osts, start=start) if choice.layout else choice.why


def test_a_pool_of_good_osts_keeps_what_the_layout_says() -> None:
    chosen = choose(PFL, MANY, targets(8, _3="sick"), "good", [0, 1, 2, 4])
    assert words(chosen) == "-E 128M -c 1 -S 4M -p good -E -1 -c 4 -S 4M -p good"
    all_ = Layout((Component(0, EOF, 4 * MIB, 65535),))
    assert words(choose(all_, MANY, targets(8), "good", [0, 1])) == "-c -1 -S 4M -p good"


def test_a_component_on_the_mdt_or_in_a_pool_stays_as_it_is() -> None:
    base = Layout(
        (
            Component(0, MIB, MIB, 0, "mdt"),
            Component(MIB, 64 * MIB, MIB, 1, pool="flash"),
            Component(64 * MIB, EOF, MIB, 4),
        ),
        composite=True,
    )
    chosen = choose(base, MANY, targets(8, _3="sick"), "good", [0, 1, 2, 4])
    assert words(chosen) == "-E 1M -L mdt -E 64M -c 1 -S 1M -p flash -E -1 -c 4 -S 1M -p good"
    assert "no pool of good OSTs" in choose(base, MANY, targets(8, _3="sick"), "good", []).why


def test_a_pool_that_nobody_keeps_is_not_taken() -> None:
    assert choose(PLAIN, MANY, targets(8, _3="sick"), "good", list(range(8))).method == "start"


def test_without_a_pool_stripes_lie_in_a_row_where_none_is_amiss() -> None:
    chosen = choose(PLAIN, MANY, targets(16, _3="sick", _5="full"), "good", [])
    assert (chosen.method, words(chosen)) == ("start", "-c 8 -S 4M -i 6")
    one = choose(PLAIN, Expected(1, GIB), targets(16, _0="sick"), "", [])
    assert words(one) == "-c 1 -S 4M -i 1"
    two = choose(PFL, Expected(1, GIB), targets(16, _3="sick"), "", [])
    assert words(two) == "-E 128M -c 1 -S 4M -i 4 -E -1 -c 4 -S 4M -i 5"


def test_lists_are_named_only_where_the_user_says_so() -> None:
    seen = targets(8, 0.01, _1="sick", _3="full", _5="sick")
    assert words(choose(PLAIN, MANY, seen, "", [])) == "-c 2 -S 4M -i 6"
    worse = targets(8, 0.01, _1="sick", _3="sick", _5="sick", _7="sick")
    assert "--lists" in choose(PLAIN, MANY, worse, "", []).why
    assert words(choose(PLAIN, MANY, worse, "", [], lists=True)) == "-c 4 -S 4M -o 0,2,4,6"


def test_nothing_is_done_that_would_not_pay() -> None:
    assert "no OST has a problem" in choose(PLAIN, MANY, targets(8), "", []).why
    slower = choose(PLAIN, MANY, targets(64, 0.5, _3="sick"), "", [])
    assert slower.why == "8 good OSTs would take 4.0 times as long as all of them with the slow one"
    assert "small files" in choose(PLAIN, Expected(1000, 1000 * MIB), targets(8, _3="sick"), "", []).why
    big = choose(PLAIN, Expected(64, 4000 * GIB), targets(16, _3="sick"), "", [])
    assert "too little room" in big.why
    extends = Layout((Component(0, EOF, MIB, 1, extension_bytes=64 * MIB),))
    assert "self-extending" in choose(extends, MANY, targets(8, _3="sick"), "good", [1]).why


VERDICTS = st.lists(
    st.sampled_from(["ok", "ok", "ok", "sick", "full", "dead", "silent"]), min_size=1, max_size=24
)


@given(VERDICTS, st.sampled_from([PLAIN, PFL]), st.integers(0, 20), st.booleans())
def test_no_ost_that_is_amiss_is_ever_named(verdicts: Any, base: Layout, files: int, lists: bool) -> None:
    seen = targets(len(verdicts), **{f"_{i}": v for i, v in enumerate(verdicts)})
    chosen = choose(base, Expected(files, files * GIB), seen, "", [], lists=lists)
    amiss = {i for i, v in enumerate(verdicts) if v in AVOIDED | UNKNOWN}
    for component, named in zip(chosen.layout.components if chosen.layout else (), chosen.osts, strict=True):
        run = range(named[0], named[0] + component.stripe_count)
        osts = tuple(run) if chosen.method == "start" else named
        assert len(osts) == component.stripe_count and not amiss & set(osts) and max(osts) < len(verdicts)


@given(
    VERDICTS, st.sampled_from([PLAIN, PFL]), st.integers(0, 20), st.booleans(), st.sets(st.integers(0, 23))
)
def test_no_hard_goal_refuses_what_is_chosen(
    verdicts: Any, base: Layout, files: int, lists: bool, pool: set[int]
) -> None:
    seen = targets(len(verdicts), **{f"_{i}": v for i, v in enumerate(verdicts)})
    chosen = choose(base, Expected(files, files * GIB), seen, "good", sorted(pool), lists=lists)
    assert not held_to(base, chosen, seen, good=pool)


def held_to(base: Layout, chosen: DirectoryChoice, seen: list[Ost], **pools: set[int]) -> str:
    its = tuple(scores(base, chosen, seen, pools))
    return refusal(Change(lever="layout", target="/scratch/out", wanted={"": words(chosen)}, scores=its))


@pytest.mark.parametrize("verdict", ["dead", "refusing", "excluded", "full", "nearly-full"])
def test_a_hard_goal_refuses_a_layout_with_an_ost_that_its_files_did_not_get(verdict: str) -> None:
    """Whatever chose it: it is put together here by a fault of who chooses."""
    seen = targets(8, _5=verdict)
    if "full" in verdict:
        seen[5] = msgspec.structs.replace(seen[5], free_bytes=1)
    base = Layout((Component(0, EOF, MIB, 2, pool="flash"),))
    for method, osts in (("list", (1, 5)), ("start", (4,))):
        bad = DirectoryChoice(method, "", base, (osts,))  # type: ignore[arg-type]
        assert "0 now, 1 after it" in held_to(base, bad, seen, flash={0, 1, 2, 4})
    other = Layout((Component(0, EOF, MIB, 2, pool="good"),))
    assert "0 now, 1 after it" in held_to(
        base, DirectoryChoice("pool", "", other), seen, flash={1}, good={1, 5}
    )


def test_a_hard_goal_refuses_a_layout_that_leaves_its_pool() -> None:
    base = Layout((Component(0, EOF, MIB, 2, pool="flash"),))
    leaves = DirectoryChoice("list", "", base, ((1, 2),))
    why = held_to(base, leaves, targets(8), flash={0, 1})
    assert why == "OSTs outside the pool of a component that files there may get: 0 now, 1 after it"
    assert not held_to(base, leaves, targets(8), flash={1, 2, 3})


def test_that_no_layout_keeps_files_from_what_is_amiss_is_listed_while_the_job_runs(tmp_path: Path) -> None:
    """With --apply nothing was said, and nothing done."""
    seen = targets(8, 0.01, _1="sick", _3="sick", _5="sick", _7="sick")
    chosen = choose(PLAIN, MANY, seen, "", [])
    assert chosen.stuck and not choose(PLAIN, MANY, targets(8), "", []).stuck
    job = Layouts(config.Settings(run=config.RunSettings(state_dir=str(tmp_path))))
    job.begin([], "solver", cannot={"/scratch/out": chosen.why})
    (cannot,) = job.agent.store.proposals().cannot_mend
    assert (cannot.target, cannot.why) == ("/scratch/out", chosen.why)
    job.end()
    assert not job.agent.store.proposals().cannot_mend


def test_one_that_is_drained_and_slow_by_it_is_avoided_all_the_same() -> None:
    seen = targets(8, _3="slow")
    assert "no OST has a problem" in words(choose(PLAIN, MANY, seen, "good", []))
    drained = judge(msgspec.structs.replace(seen[3], degraded=True, relative_speed=0.6))
    seen[3] = msgspec.structs.replace(seen[3], relative_speed=0.1, state=drained)
    assert "OST 3" in choose(PLAIN, MANY, seen, "good", []).why
