"""What clientd and mdsd count of the loop on the testbed comes to who scrapes them."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tarazu.left import AS_GOOD, LEFT_TO_LUSTRE, NO_GAIN
from tarazu.sim.testbed.processes import free_port
from tests.loop.conftest import make_loop
from tests.loop.test_as_good import FILES, GAINING, JOB, run_twice

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

pytest.importorskip("prometheus_client")
PORTS = {daemon: free_port() for daemon in ("mdsd", "clientd")}


@pytest.fixture
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    metrics = {daemon: f"127.0.0.1:{port}" for daemon, port in PORTS.items()}
    settings = {**GAINING, "part.metrics": metrics}
    for loop in make_loop(tmp_path_factory.mktemp("even") / "tb", settings, osss=4, osts_per_oss=4):
        (loop.testbed.directory / "job.py").write_text(JOB)
        yield loop


def counted(daemon: str) -> dict[str, float]:
    """Its samples."""
    with urllib.request.urlopen(f"http://127.0.0.1:{PORTS[daemon]}/metrics", timeout=300) as answer:
        lines = answer.read().decode().splitlines()
    rows = (line.rpartition(" ") for line in lines if line.startswith("tarazu_"))
    return {name: float(value) for name, _, value in rows}


@pytest.mark.long
def test_what_is_left_to_lustre_is_counted(loop: Loop) -> None:
    left = f'{{status="{LEFT_TO_LUSTRE}"}}'
    assert f"tarazu_mdsd_answers_total{left}" not in counted("mdsd")
    line = run_twice(loop)
    assert f"plan={LEFT_TO_LUSTRE!r} because={AS_GOOD!r}" in line, line
    assert counted("mdsd")[f"tarazu_mdsd_answers_total{left}"] == 1
    of_clientd = counted("clientd")
    assert of_clientd[f"tarazu_clientd_plans_total{left}"] == 1
    assert of_clientd[f'tarazu_clientd_files_not_placed_total{{reason="{NO_GAIN}"}}'] == FILES
