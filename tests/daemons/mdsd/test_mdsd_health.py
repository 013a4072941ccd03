"""A real mdsd beside the MDS's parameters: who has promises on an OST that dies hears of it."""

from __future__ import annotations

import time
import uuid
from typing import Any

from tarazu.run import job_log
from tarazu.wire.messages import StepAlive, TargetsChanged, TargetsTold
from tests.daemons.conftest import PATIENCE_S, Site, allocation, ask
from tests.daemons.mdsd.test_told import told


def set_state(site: Site, index: int, state: str) -> None:
    path = site.mds_root / f"sys/kernel/debug/lustre/osp/lustre-OST{index:04x}-osc-MDT0000" / "state"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"current_state: {state}\nstate_history:\n - [ 1795165919, FULL ]\n")


def news(client: Any, timeout_s: float = PATIENCE_S) -> TargetsChanged | None:
    deadline = time.monotonic() + timeout_s
    while (left_s := deadline - time.monotonic()) > 0:
        if isinstance(message := client.receive(left_s), TargetsChanged):
            return message
    return None


def speak(client: Any, *ids: str) -> None:
    client.request(StepAlive(ids, uuid.uuid4().hex), PATIENCE_S)


def test_a_step_hears_of_a_dead_ost_until_its_leader_has_heard_it_also_after_a_kill_of_mdsd(
    site: Site,
) -> None:
    for index in range(5):
        set_state(site, index, "FULL")
    mdsd = site.mdsd()
    site.ossd()
    site.wait_status(lambda s: s["file_systems"].get("lustre"))
    client, other = site.client(), site.client()
    mine = {ost for file in ask(client, allocation("mine")).osts for osts in file for ost in osts}
    speak(client, "mine")
    speak(other, "unknown")
    dead = min(mine)
    set_state(site, dead, "CONNECTING")
    first = news(client)
    assert first and first.ids == ("mine",) and dict(first.osts) == {dead: "dead"}
    assert news(client), "it is said again"
    health = site.status()["file_systems"]["lustre"]["health"]
    assert health[str(dead)]["why"] == "CONNECTING"
    after = ask(other, allocation("after"))
    assert dead not in {ost for file in after.osts for osts in file for ost in osts}

    mdsd.kill()
    mdsd.wait()
    site.mdsd()
    client.request(told("mine", [{dead: 1 << 20}]), PATIENCE_S)
    speak(client, "mine")
    again = news(client)
    assert again and again.ids == ("mine",) and dict(again.osts) == {dead: "dead"}
    client.request(TargetsTold(again.ids, uuid.uuid4().hex, again.generation), PATIENCE_S)
    site.wait_status(lambda s: s["untold"] == 0)
    assert not news(other, 0.1), "it has no promises there"
    read = job_log.audit(site.audit, 0, time.time() + 60)
    assert read.damaged == [] and read.status["health"] and read.status["allocated"] == 2
    lines = [line for line in site.audit.read_text().splitlines() if "status=health" in line]
    assert lines and all(f"ost={dead} health=dead" in line for line in lines)
