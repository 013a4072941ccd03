"""Which nodes a job should get, and why it is left to Slurm."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tarazu.batch.jobs import ApplicationKey, Job, Waiting
from tarazu.batch.node_set import unfold
from tarazu.batch.nodes import Partition
from tarazu.batch.slurm import View
from tarazu.parts.bursts.burstd import deciding
from tarazu.parts.bursts.burstd.answering import AboutJob
from tarazu.parts.bursts.measures.applications import ApplicationCharacter, Trait
from tarazu.parts.bursts.settings import Bursts
from tarazu.parts.bursts.traffic.machine import Machine, regular

YES, NO = Trait(1.0, 6), Trait(0.0, 6)
EVEN = ApplicationCharacter(6, 4, YES, YES, None, 0.0, False, (0.25,) * 4)
OPTIONS = Bursts(per_io_node=1)
MACHINE = regular(16, 4)


def site(machine: Machine = MACHINE, idle: str = "n[00-15]", kinds: int = 1, age_s: float = 0.0) -> Any:
    nodes = frozenset(machine.nodes)
    test = Partition(nodes, frozenset(unfold(idle)), kinds)
    view = View(time.monotonic() - age_s, {"test": test}, "test", ())
    return deciding.site_of(machine, True, view)


def decide(found: ApplicationCharacter | None, where: Any, **more: Any) -> deciding.Decision:
    asked = AboutJob(1, "io", 4, 1000, "ann", **more)
    return deciding.decide(asked, where, lambda _: found, OPTIONS)


def character(**traits: Any) -> ApplicationCharacter:
    import msgspec

    return msgspec.structs.replace(EVEN, **traits)


@pytest.mark.parametrize(
    ("found", "where", "more", "why"),
    [
        (None, {}, {}, "not enough jobs"),
        (character(intensive=NO), {}, {}, "not data-intensive"),
        (character(all_rank=NO), {}, {}, "one node does its I/O"),
        (EVEN, {}, {"waits": True}, "does not start now"),
        (EVEN, {"age_s": 61.0}, {}, "the state of Slurm's nodes is unknown"),
        (EVEN, {}, {"partition": "other"}, "its partition is unknown"),
        (EVEN, {}, {"partition": "test,other"}, "its partition is unknown"),
        (EVEN, {"kinds": 2}, {}, "2 kinds of nodes"),
        (EVEN, {"idle": "n[00-02]"}, {}, "not so many nodes are idle"),
        (EVEN, {"idle": "n[00-03]"}, {}, "Slurm's own choice"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_why_a_job_is_left_to_slurm(
    found: ApplicationCharacter | None, where: dict[str, Any], more: dict[str, Any], why: str
) -> None:
    decision = decide(found, site(**where), **more)
    assert not decision.nodes and why in decision.why


def test_io_nodes_that_serve_running_data_intensive_jobs_come_last() -> None:
    busy = Job("1", "bob", "io", ("n03", "n07"), 0.0, float("inf"))
    others = Job("2", "eve", "cpu", ("n11", "n15"), 0.0, float("inf"))
    strangers = Job("3", "bob", "io", ("n08", "elsewhere"), 0.0, float("inf"))

    def knowledge(of: ApplicationKey) -> ApplicationCharacter | None:
        return character(shares=None) if of.user == "bob" else character(intensive=NO)

    there = site()
    there = deciding.site_of(MACHINE, True, there.view, (busy, others, strangers), knowledge)
    assert there.load.tolist() == [0.5, 0.5, 0, 0]
    assert decide(EVEN, there).nodes == ("n08", "n09", "n12", "n13")


def test_nodes_of_more_io_nodes_but_none_that_are_taken() -> None:
    decision = decide(EVEN, site())
    assert (decision.folded, decision.io_nodes) == ("n[00-01,04-05]", 2)
    asked = AboutJob(1, "io", 4, 1000, "ann")
    again = deciding.decide(asked, site(), lambda _: EVEN, OPTIONS, decision.nodes)
    assert len(again.nodes) == 4 and not set(again.nodes) & set(decision.nodes)
    assert deciding.by_slurm(asked, site(), decision.nodes) == [f"n{i:02}" for i in range(8, 12)]


def test_the_next_optimizable_job_is_the_first_that_waits() -> None:
    def known(application: ApplicationKey) -> ApplicationCharacter | None:
        return EVEN if application.name == "io" else None

    def job(id: str, name: str, nodes: int, state: str = "PENDING") -> Waiting:
        return Waiting(id, "ann", nodes, "test", state, 0.0, "Priority", "", name)

    queue = [job("1", "io", 9, "RUNNING"), job("2", "other", 7), job("3", "io", 5), job("4", "io", 3)]
    assert deciding.next_optimizable(queue, known) == 5
    assert deciding.next_optimizable(queue, known, most=1) is None
