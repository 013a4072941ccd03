"""LNet routers chosen for a job: from its leader by clientd and mdsd to rules on the server, and back at its end."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tarazu.cli import main
from tarazu.sim.testbed import routers
from tarazu.sim.testbed.daemons import daemon_commands
from tests.daemons.conftest import patiently
from tests.loop.conftest import Loop, make_loop

WRITER = """
import os, sys, time
folder, size, until = sys.argv[1], int(sys.argv[2]), sys.argv[3]
os.makedirs(folder, exist_ok=True)
with open(f"{folder}/first", "wb") as file:
    file.write(bytes(size))
while until != "-" and not os.path.exists(until):
    time.sleep(0.05)
with open(f"{folder}/second", "wb") as file:
    file.write(bytes(size))
"""
SIZE = 8 << 20


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    directory = tmp_path_factory.mktemp("routed")
    curves = directory / "curves.csv"
    curves.write_text("application,resources,bytes_per_s\nalone,1,2e9\nalone,2,1e9\n")
    changes: dict[str, dict[str, Any]] = {
        "layout": {"stripe_count": "paper", "striping": "raid0", "min_size": 0},
        "part.routers": {"mode": "apply", "curves": str(curves)},
        "run": {"alive_s": 2.0},
    }
    yield from make_loop(
        directory / "tb", changes, osss=1, osts_per_oss=2, clients=2, routers=2, interval_s=60
    )


def rules(loop: Loop) -> list[tuple[str, str]]:
    return [(rule.dst, rule.rte) for rule in routers.rules_of(loop.testbed.oss_root("oss1"))]


@pytest.mark.long
def test_a_job_has_the_router_that_its_curve_says_while_it_runs(
    loop: Loop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its rule is shown, taken back and held on the server, set again, and gone at the end."""
    bed, until = loop.testbed, loop.testbed.directory / "go on"
    (service,) = [d for d in daemon_commands(bed) if d.name == "tarazu-ossd-routers-oss1"]
    on_server = {name: service.env[name] for name in ("PATH", "TARAZU_ROOT", "TARAZU_STATE_DIRECTORY")}
    for name, value in bed.environment(0).items():
        if name.startswith("TARAZU_"):
            monkeypatch.setenv(name, value)

    def said(*words: str) -> str:
        assert main([*words]) == 0
        return capsys.readouterr().out

    program = [sys.executable, "-c", WRITER, loop.mount() / "out", SIZE]
    loop.run(*program, "-", app="alone")
    assert rules(loop) == [], "nothing was known of it"
    loop.clear()
    running = threading.Thread(target=loop.run, args=(*program, until), kwargs={"app": "alone"})
    running.start()
    ((dst, rte),) = patiently(lambda: rules(loop))
    assert dst == str(routers.client_nid(1)) and rte in [str(routers.router_nid(n)) for n in (1, 2)]
    seen = json.loads(said("change", "routers", "--json"))["mdsd"]
    (job,) = [job for job in seen["jobs"] if job["known"]]
    assert (job["nodes"], job["routers"], job["why"]) == (1, rte, "")
    assert job["slowdown"] < job["alike"] == pytest.approx(2.0, rel=0.05)
    advised = said("change", "routers", "--advise")
    assert f"lnetctl udsp add --dst {dst} --rte {rte}" in advised and "# on oss1:" in advised
    assert "routers of jobs: apply, policy joint; 1 step told" in said("status")
    for name, value in on_server.items():
        monkeypatch.setenv(name, value)
    assert said("change", "routers", "--undo").startswith(f"restored: routers --dst {dst} --rte {rte} [")
    assert rules(loop) == []
    assert "routers: nothing new is set: held by tarazu change routers --undo" in said("change", "routers")
    assert "routers: goes on" in said("change", "routers", "--apply")
    assert patiently(lambda: rules(loop)) == [(dst, rte)]
    until.touch()
    running.join()
    assert patiently(lambda: not rules(loop) and "gone")
    audit = (bed.directory / "log" / "audit.log").read_text()
    assert f'job="" nodes=1 routers="{rte}" slowdown=1.0' in audit
