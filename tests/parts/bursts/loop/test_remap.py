"""A mapping of nodes to routers: from `tarazu change bursts remap` by mdsd to rules on the server, and away again."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.sim.testbed import processes, routers
from tests.daemons.conftest import patiently
from tests.loop.conftest import Loop, make_loop
from tests.parts.routers.test_loop import SIZE, WRITER


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    directory = tmp_path_factory.mktemp("mapped")
    curves = directory / "curves.csv"
    curves.write_text("application,resources,bytes_per_s\nalone,1,2e9\nalone,2,1e9\n")
    machine = directory / "machine"
    machine.write_text(
        f"client1 cabinet=c0 io_node={routers.router_nid(2)}\nclient2 cabinet=c0 io_node={routers.router_nid(1)}\n"
    )
    changes = {
        "layout": {"stripe_count": "paper", "striping": "raid0", "min_size": 0},
        "part.routers": {"mode": "apply", "curves": str(curves)},
        "run": {"alive_s": 2.0},
        "part.bursts": {"machine": str(machine)},
    }
    yield from make_loop(
        directory / "tb", changes, osss=1, osts_per_oss=2, clients=2, routers=2, interval_s=60
    )


def rules(loop: Loop) -> dict[str, str]:
    return {rule.dst: rule.rte for rule in routers.rules_of(loop.testbed.oss_root("oss1"))}


def remap(loop: Loop, *words: str) -> str:
    """On mdsd's node."""
    state = {"TARAZU_STATE_DIRECTORY": str(loop.testbed.directory / "var")}
    done = loop.tarazu("change", "bursts", "remap", *words, env=state)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


@pytest.mark.long
def test_servers_follow_a_mapping_until_it_is_undone(loop: Loop) -> None:
    """Written, beside a job's rule, over mdsd's death, and taken away while mdsd is dead."""
    one, two = (str(routers.client_nid(n)) for n in (1, 2))
    mapped = {one: str(routers.router_nid(2)), two: str(routers.router_nid(1))}
    remap(loop, "--apply", "--mapping", "round-robin")
    assert patiently(lambda: rules(loop) == mapped)
    program = [sys.executable, "-c", WRITER, loop.mount() / "out", SIZE]
    loop.run(*program, "-", app="alone")
    until = Path(loop.testbed.directory / "go on")
    running = threading.Thread(target=loop.run, args=(*program, until), kwargs={"app": "alone"}, daemon=True)
    running.start()
    audit = loop.testbed.directory / "log" / "audit.log"
    assert patiently(lambda: " what=routers " in audit.read_text())
    assert rules(loop)[two] == mapped[two] and len(rules(loop)) == 2, "each node has one rule"
    until.touch()
    running.join()
    assert patiently(lambda: rules(loop) == mapped), "the job's rule is gone with it"
    assert processes.kill(loop.testbed.directory, "tarazu-mdsd")
    loop.testbed.start_daemons()
    assert patiently(lambda: rules(loop) == mapped)
    assert "mapping of nodes to routers: round-robin" in loop.tarazu("change", "routers").stdout
    assert processes.kill(loop.testbed.directory, "tarazu-mdsd")
    assert remap(loop, "--undo").startswith("restored: mapping ")
    loop.testbed.start_daemons()
    assert patiently(lambda: not rules(loop))
    assert 'how="round-robin"' in audit.read_text()
