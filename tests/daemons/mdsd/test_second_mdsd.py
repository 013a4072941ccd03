"""An mdsd is killed, and another one answers at the second address: what was promised to a living step is in its book
within two signs of life, and the plan that follows counts it.

Real daemons, and what `tarazu run` tells clientd.
"""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tarazu import config
from tarazu.model import FileName
from tarazu.run.during import _tell
from tarazu.run.plan.promises import StepPromises
from tarazu.sim.testbed.processes import free_port
from tarazu.stripes import from_bytes
from tarazu.wire import local
from tarazu.wire.messages import AllocationReply
from tests.daemons.conftest import PATIENCE_S, PATIENT_MDSD, PLAIN, Site, allocation, ask, status_by

ALIVE_S = 4.0
MIB = 1 << 20


class Two:
    """Two nodes that may run mdsd, a server that reports to both, and a client's node."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.statistics = [site.statistics, f"tcp://127.0.0.1:{free_port()}"]
        self.requests = [site.requests, f"tcp://127.0.0.1:{free_port()}"]
        site.statistics, site.requests = ", ".join(self.statistics), ", ".join(self.requests)
        site.configure()
        self.socket = site.directory / "clientd.sock"
        settings = config.override(config.Settings(), "clientd", socket=str(self.socket))
        self.settings = config.override(settings, "run", alive_s=ALIVE_S)

    def mdsd(self, number: int) -> Any:
        own = "--statistics", self.statistics[number], "--requests", self.requests[number]
        state = "--state", str(self.site.directory / f"state{number}")
        arguments = ("--root", str(self.site.mds_root), *own, *state)
        return self.site.start("mdsd", *arguments, constants=PATIENT_MDSD)

    def clientd(self) -> None:
        database = str(self.site.directory / "interaction.db")
        self.site.start("clientd", "--socket", str(self.socket), "--database", database)

    def client(self, number: int) -> Any:
        return self.site.transports[0].requester(self.requests[number])

    def status(self, number: int) -> dict[str, Any]:
        return status_by(self.client(number), [])

    def promised(self, number: int) -> dict[int, int]:
        """OST → bytes, as this mdsd has it."""
        systems = self.status(number)["file_systems"].values()
        return {o["index"]: o["promised_bytes"] for fs in systems for o in fs["osts"] if o["promised_bytes"]}

    def until(self, holds: Any) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.02)


class Leader:
    """What `tarazu run` does with an allocation: it tells clientd that its step lives."""

    def __init__(self, two: Two, reply: AllocationReply, sizes: list[int]) -> None:
        files = tuple(
            local.PlannedFile(
                n + 1, FileName(f"/{n}", f"/{n}", f"/{n}", False, 0, 0, n), size, 0, reply.osts[n], n
            )
            for n, size in enumerate(sizes)
        )
        self.promises = StepPromises(two.settings, "lustre")
        self.promises.add(local.PlanReply("planned", "", 1, reply.id, (PLAIN,), files), guess=False)
        plans = [SimpleNamespace(promises=self.promises)]
        self.step: Any = SimpleNamespace(plans=plans, over=threading.Event(), settings=two.settings)
        self.id = reply.id

    def sign(self) -> None:
        _tell(self.step)

    def left(self) -> dict[int, int]:
        """OST → bytes that are still promised, as it knows it."""
        told = self.promises.told(self.id)
        stripes = from_bytes(told.osts, told.sizes, told.starts)
        total: dict[int, int] = {}
        for ost, size in zip(stripes.osts, stripes.sizes, strict=True):
            total[ost] = total.get(ost, 0) + size
        return total


@pytest.fixture
def two(site: Site) -> Two:
    site.client()  # makes the transport
    return Two(site)


def test_the_promises_of_a_living_step_are_in_the_new_book_within_two_signs_of_life(
    two: Two, record_property: Any
) -> None:
    first = two.mdsd(0)
    two.site.ossd()
    two.clientd()
    two.until(lambda: Path(two.socket).exists())
    two.until(lambda: two.status(0)["file_systems"])
    sizes = [64 * MIB, 32 * MIB, 16 * MIB]
    files = tuple(allocation().files[0].__class__(size, 0) for size in sizes)
    reply = ask(two.client(0), allocation("old", files=files, alive_s=2 * ALIVE_S))
    leader = Leader(two, reply, sizes)
    leader.sign()
    leader.promises.note({3: 0}, everywhere=True)  # a file was closed, empty
    leader.sign()
    assert sum(leader.left().values()) == 96 * MIB
    two.until(lambda: two.promised(0) == leader.left())
    first.send_signal(signal.SIGKILL)
    first.wait()
    two.mdsd(1)
    two.until(lambda: two.status(1)["file_systems"])
    assert two.promised(1) == {} and two.status(1)["requests"]["promises"] == 0

    signs, begin = 0, time.monotonic()
    while not two.promised(1):  # two signs, where the answer to the first is here before the second
        leader.sign()
        signs += 1
        time.sleep(ALIVE_S)
        assert time.monotonic() < begin + PATIENCE_S
    record_property("signs", signs)
    assert two.promised(1) == leader.left()
    record_property("known_after_s", time.monotonic() - begin)
    assert two.status(1)["requests"]["told_promises"] == 1

    # The next plan counts them: what is left is what OSTs have beyond.
    again = ask(two.client(1), allocation("new", uid=2000))
    assert again.status == "allocated"
    more = two.promised(1)
    assert sum(more.values()) == sum(leader.left().values()) + 16 * MIB
    assert all(more[ost] >= size for ost, size in leader.left().items())
