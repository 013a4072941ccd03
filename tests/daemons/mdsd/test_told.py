"""What a living step's leader says was promised to it is entered by an mdsd that does not know it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tarazu.stripes import pack, to_bytes
from tarazu.wire.messages import Acknowledged, FileClosed, FileSpec, PromiseTold, StepAlive, StepEnded
from tests.daemons.conftest import PATIENCE_S, Site, allocation, ask

MIB = 1 << 20


def told(id: str, files: Sequence[Mapping[int, int]], uid: int = 1000, **changes: Any) -> PromiseTold:
    fields = {"expires_s": 600.0, "alive_s": 60.0, **changes}
    osts, sizes, starts = to_bytes(pack(files))
    return PromiseTold(id, f"told-{id}", "lustre", uid, osts=osts, sizes=sizes, starts=starts, **fields)


def promised(status: dict[str, Any]) -> int:
    return sum(ost["promised_bytes"] for fs in status["file_systems"].values() for ost in fs["osts"])


@pytest.fixture
def running(site: Site) -> Site:
    site.mdsd()
    site.ossd()
    site.wait_status(lambda status: status["file_systems"])
    return site


def test_what_is_not_known_is_asked_for_and_entered_once(running: Site) -> None:
    client = running.client()
    known = ask(client, allocation("known", alive_s=60.0))
    assert known.status == "allocated"
    alive = StepAlive(("known", "old"), "alive1")
    assert client.request(alive, PATIENCE_S) == Acknowledged("alive1", ("old",))
    before = promised(running.status())
    for files in ([{0: MIB}, {}, {0: MIB, 1: 2 * MIB}], [{0: 100 * MIB}]):
        assert client.request(told("old", files), PATIENCE_S) == Acknowledged("told-old")
        assert client.request(told("known", files), PATIENCE_S) == Acknowledged("told-known")
    status = running.status()
    assert promised(status) == before + 4 * MIB and status["requests"]["told_promises"] == 1
    assert client.request(StepAlive(("known", "old"), "alive2"), PATIENCE_S) == Acknowledged("alive2")
    client.request(FileClosed("old", "m1", ((2, 0),)), PATIENCE_S)
    running.wait_status(lambda status: promised(status) == before + MIB)
    client.request(StepEnded("old", "m2"), PATIENCE_S)
    running.wait_status(lambda status: promised(status) == before)
    assert client.request(StepAlive(("old",), "alive3"), PATIENCE_S) == Acknowledged("alive3")


def test_what_was_declined_here_and_promised_by_another_mdsd_is_entered(running: Site) -> None:
    client = running.client()
    asked = allocation("old", files=(FileSpec(1 << 60, 0),), alive_s=60.0)
    assert ask(client, asked).status != "allocated"
    assert client.request(StepAlive(("old",), "alive1"), PATIENCE_S) == Acknowledged("alive1", ("old",))
    client.request(told("old", [{0: MIB}]), PATIENCE_S)
    assert promised(running.status()) == MIB


def test_what_cannot_be_is_not_entered_nor_asked_for_again(running: Site) -> None:
    client = running.client()
    client.request(told("huge", [{0: 1 << 60}]), PATIENCE_S)
    client.request(PromiseTold("torn", "t", "lustre", 1000, 1.0, 1.0, b"1", b"", b""), PATIENCE_S)
    status = running.status()
    assert promised(status) == 0 and status["requests"]["told_promises"] == 0
    assert client.request(StepAlive(("huge",), "alive"), PATIENCE_S) == Acknowledged("alive")
    assert "promise huge is not taken over: expected promises of at most" in running.log("mdsd")


def test_a_step_that_falls_silent_after_it_was_told_loses_its_promise(running: Site) -> None:
    running.client().request(told("brief", [{0: MIB}], alive_s=2.0), PATIENCE_S)
    running.wait_status(lambda status: status["requests"]["dead_steps"] == 1 and promised(status) == 0)
