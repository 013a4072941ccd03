"""Real daemons as processes on 127.0.0.1, with keys; each test has its own directory, ports and roots."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tarazu.daemons.clientd.notices import Notices
from tarazu.errors import Unavailable
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.sim.testbed.processes import free_port
from tarazu.wire import keys
from tarazu.wire.messages import AllocationReply, AllocationRequest, FileSpec, StatusReply, StatusRequest
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tests.daemons.listening import Mdsd

DATA = Path(__file__).parent.parent / "data" / "lustre"
PATIENCE_S = 300.0
"""Only how long a test may hang before it fails."""

SHOWN_CHARACTERS = 20_000
"""Of the end of a log, where a test failed."""

PLAIN = Layout((Component(0, EOF, 1 << 20, 2),))

PATIENT_MDSD = {"daemons.mdsd.placing.LONGEST_S": PATIENCE_S}
"""The process that computes allocations loads its modules with a lower priority than all else that runs here."""

_standing: list[Site] = []


def program(module: str, constants: Mapping[str, float]) -> list[str]:
    """`constants`: of modules that are others in this process (`daemons.questions.ANSWER_S`)."""
    lines = ["import sys"]
    for name, value in constants.items():
        where, _, constant = name.rpartition(".")
        lines += [f"import tarazu.{where} as found", f"found.{constant} = {value}"]
    lines += [f"import {module} as service", "sys.exit(service.main(sys.argv[1:]))"]
    return [sys.executable, "-c", "; ".join(lines)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With a test, or a fixture, that failed: what its daemons said, and which had ended."""
    report = yield
    if report.failed and call.excinfo:
        silent = call.excinfo.errisinstance(Unavailable)
        report.sections += [part for site in _standing for part in site.story(stacks=silent)]
    return report


class Site:
    """One mdsd, any number of ossds and a client, all sharing one configuration file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.processes: list[subprocess.Popen[str]] = []
        self.started: dict[str, list[subprocess.Popen[str]]] = {}
        """The same by daemon, as `start` was told."""
        self.statistics = f"tcp://127.0.0.1:{free_port()}"
        self.requests = f"tcp://127.0.0.1:{free_port()}"
        self.keys = directory / "keys"
        for role in keys.ROLES:
            keys.create(self.keys, role)
        self.mds_root = directory / "mds"
        shutil.copytree(DATA / "mds", self.mds_root)
        self.audit = directory / "audit.log"
        self.state = directory / "tarazu/mdsd"
        self.config = directory / "tarazu.toml"
        self.configure()
        self.transports: list[ZmqTransport] = []
        _standing.append(self)

    def configure(self, **mdsd: float) -> None:
        """Write the configuration; `mdsd` overrides settings of that section."""
        lines = {"cpu_limit": 1.0, "memory_limit": 1.0, **mdsd}
        self.config.write_text(
            f"[keys]\ndirectory = '{self.keys}'\n[state]\ndirectory = '{self.directory}'\n"
            f"[ossd]\ninterval_s = 0.1\n"
            f"[allocate]\nleast_gain = -1.0\n"
            f"[mdsd]\nstatistics = '{self.statistics}'\nrequests = '{self.requests}'\n"
            f"audit_log = '{self.audit}'\n" + "".join(f"{name} = {value}\n" for name, value in lines.items())
        )

    def start(
        self,
        daemon: str,
        *arguments: str,
        environ: Mapping[str, str] | None = None,
        constants: Mapping[str, float] | None = None,
        module: str = "",
    ) -> subprocess.Popen[str]:
        """`module`: of the program, where it is a part's."""
        log = (self.directory / f"{daemon}.log").open("a")
        process = subprocess.Popen(
            [
                *program(module or f"tarazu.daemons.{daemon}.service", constants or {}),
                "--config",
                str(self.config),
                *arguments,
            ],
            stdout=log,
            stderr=log,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "error", **(environ or {})},
        )
        log.close()
        self.processes.append(process)
        self.started.setdefault(daemon, []).append(process)
        return process

    def mdsd(self) -> subprocess.Popen[str]:
        return self.start("mdsd", "--root", str(self.mds_root), constants=PATIENT_MDSD)

    def ossd(self, name: str = "oss1", root: Path = DATA / "oss") -> subprocess.Popen[str]:
        return self.start("ossd", "--name", name, "--root", str(root))

    def log(self, daemon: str) -> str:
        return (self.directory / f"{daemon}.log").read_text()

    def client(self, key_directory: Path | None = None) -> Any:
        transport = ZmqTransport(curve_for("client", key_directory or self.keys))
        self.transports.append(transport)
        requester = transport.requester(self.requests)
        requester.resend_s = 0.1
        return requester

    def status(self) -> dict[str, Any]:
        """One made after this question: a mdsd that is held up answers it by the last that it has made."""
        asked_s = time.time()
        while (status := self.last_status())["time_s"] < asked_s:
            pass
        return status

    def last_status(self) -> dict[str, Any]:
        requester = self.client()
        status = status_by(requester, self.started.get("mdsd", []))
        requester.close()
        json.dumps(status)  # What `--json` prints must be plain values.
        return status

    def wait_status(self, holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The first status for which `holds`."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            status = self.last_status()
            if holds(status):
                return status
            time.sleep(0.05)
        raise AssertionError(f"never came true; last: {status}\n{self.log('mdsd')}")

    def story(self, stacks: bool) -> list[tuple[str, str]]:
        """Of each process how it is, and all logs; `stacks`: those that run end, and log where they were."""
        became = [(process, process.poll()) for process in self.processes]
        for process, status in became:
            if stacks and status is None:
                process.send_signal(signal.SIGABRT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(20.0)
        lines = (
            f"{'runs' if status is None else f'ended with {status}'}: {' '.join(map(str, process.args))}"
            for process, status in became
        )
        logs = [
            (path.name, path.read_text(errors="replace")[-SHOWN_CHARACTERS:])
            for path in sorted(self.directory.glob("*.log"))
        ]
        return [("daemons", "\n".join(lines)), *logs]

    def stop(self) -> None:
        if self in _standing:
            _standing.remove(self)
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
        for transport in self.transports:
            transport.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.stop()


def status_by(requester: Any, processes: Sequence[subprocess.Popen[str]]) -> dict[str, Any]:
    """What a daemon says of itself, as soon as it does; nobody waits once all of its `processes` have ended."""
    question, deadline = StatusRequest(f"status-{time.monotonic_ns()}"), time.monotonic() + PATIENCE_S
    while True:
        ended = [process.poll() for process in processes]
        try:
            reply = requester.request(question, 0.5)
        except Unavailable:
            assert not ended or None in ended, f"{requester.servers}: nobody answers: ended with {ended}"
            if time.monotonic() > deadline:
                raise
        else:
            assert isinstance(reply, StatusReply)
            return reply.status


def patiently(what: Callable[[], Any]) -> Any:
    """What `what` gives as soon as that is something, and no refusal."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            if found := what():
                return found
        except (OSError, ValueError) as error:
            if time.monotonic() > deadline:
                raise AssertionError("never came") from error
        assert time.monotonic() < deadline
        time.sleep(0.1)


def allocation(id: str = "a1", fs_name: str = "lustre", **changes: Any) -> AllocationRequest:
    fields: dict[str, Any] = {
        "id": id,
        "fs_name": fs_name,
        "uid": 1000,
        "job_id": "4711",
        "layouts": (PLAIN,),
        "files": (FileSpec(8 << 20, 0), FileSpec(8 << 20, 0)),
        "deadline_s": PATIENCE_S,
        "expires_s": 600.0,
    }
    return AllocationRequest(**{**fields, **changes})


def ask(requester: Any, request: AllocationRequest) -> AllocationReply:
    reply = requester.request(request, PATIENCE_S)
    assert isinstance(reply, AllocationReply)
    return reply


@pytest.fixture
def mdsd() -> Iterator[Mdsd]:
    end = Mdsd()
    yield end
    end.transport.close()


@pytest.fixture
def notices(mdsd: Mdsd) -> Iterator[Notices]:
    told = Notices(lambda fd: ZmqTransport(None, wake_fd=fd), mdsd.replier.address)
    told.start()
    yield told
    told.stop()
    told._thread.join(PATIENCE_S)
