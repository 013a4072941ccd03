"""What a run is remembered with costs its end no more than the last reports may take, whoever is silent."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tarazu.lustre import EOF
from tarazu.model import Component, JobStep, Layout
from tarazu.native import encode_lov
from tarazu.run import meanwhile
from tarazu.run.plan.reports import StepReports
from tarazu.stats.client import Mount
from tarazu.then import LONGEST_JOB_ID, JobThen, OstThen, ServerThen, System
from tarazu.trace.records import FileRecord, RunRecord

LAYOUT = encode_lov(Layout((Component(0, EOF, 1 << 20, 2),)), ((3, 5),))


def run(tmp_path: Path) -> RunRecord:
    step = JobStep("scratch", os.getuid(), "ior", "4711")
    (tmp_path / "a").write_bytes(b"")
    file = FileRecord("/a", "/a", "/a", 0, (0,), 0, 0, 0.0, 4 << 20)
    return RunRecord(step, time.time() - 9, 9.0, "light", (file,))


def step(tmp_path: Path, socket_path: Path) -> Any:
    reports = StepReports(tmp_path / "reports", str(socket_path), "run")
    return SimpleNamespace(mounts=[Mount(str(tmp_path), "scratch")], reports=reports)


@pytest.mark.parametrize("listens", [False, True])
def test_a_silent_clientd_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listens: bool
) -> None:
    monkeypatch.setattr(os, "getxattr", lambda path, name: LAYOUT)
    path = tmp_path / "clientd.sock"
    with socket.socket(socket.AF_UNIX) as server:
        if listens:
            server.bind(str(path))
            server.listen()
        noted = meanwhile.noted(cast(Any, step(tmp_path, path)), run(tmp_path))
    assert noted.ost_bytes == {3: 2 << 20, 5: 2 << 20} and noted.system is None


def test_a_file_system_that_hangs_is_left_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(os, "getxattr", lambda path, name: over.wait())
    of = cast(Any, step(tmp_path, tmp_path / "nobody"))
    for _ in range(2):
        assert meanwhile.noted(of, run(tmp_path)).ost_bytes == {}
    over.set()


def test_a_run_on_thousands_of_osts_keeps_the_servers_of_those_that_it_keeps() -> None:
    osts = {index: OstThen(f"oss{index}") for index in range(2 * meanwhile.MOST_OSTS)}
    servers = {ost.server: ServerThen(jobs=(JobThen("x" * LONGEST_JOB_ID),)) for ost in osts.values()}
    kept = meanwhile._bounded(System(9.0, osts, servers))
    assert len(kept.osts) == meanwhile.MOST_OSTS
    assert kept.servers.keys() == {ost.server for ost in kept.osts.values()}
