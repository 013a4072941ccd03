"""What every daemon is: its loop, signals, periodic work, its claim; and what systemd and the log are told of it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tarazu import config
from tarazu.daemons import service as module
from tarazu.daemons.service import Every, Service, Wakeup, claim
from tarazu.daemons.service_manager import ServiceManager
from tarazu.errors import ConfigError
from tarazu.part import installed
from tarazu.wire.said import SaidOnce
from tests.of_parts import brought

from .conftest import PATIENCE_S, Site

WATCHDOG_S = 1.0


class Systemd:
    """The socket that it listens on."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self.environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))}

    def next(self, timeout_s: float = PATIENCE_S) -> dict[str, str]:
        self.socket.settimeout(timeout_s)
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def wait(self, holds: Callable[[dict[str, str]], object]) -> dict[str, str]:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if holds(told := self.next()):
                return told
        raise AssertionError("never told")


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    names = {"path": str(tmp_path / "notify"), "abstract": f"@tarazu-test-{os.getpid()}-{tmp_path.name}"}
    listening = Systemd(names[request.param])
    yield listening
    listening.socket.close()


def test_what_is_told(systemd: Systemd) -> None:
    environ = {**systemd.environ, "WATCHDOG_PID": str(os.getpid()), "PATH": "/bin"}
    manager = ServiceManager(environ)
    assert environ == {"PATH": "/bin"}, "what a daemon starts must not speak for it"
    manager.ready("5 OSTs\nSTOPPING=1")
    assert systemd.next() == {"READY": "1", "STATUS": "5 OSTs\\nSTOPPING=1"}
    before = time.monotonic()
    manager.reloading()
    after = time.monotonic()
    told = systemd.next()
    assert told.keys() == {"RELOADING", "MONOTONIC_USEC"}
    assert int(before * 1e6) <= int(told["MONOTONIC_USEC"]) <= after * 1e6
    manager.alive()
    manager.alive()
    manager.status("6 OSTs")
    manager.status("6 OSTs")
    manager.busy(60)
    manager.busy(60)
    manager.stopping()
    assert [systemd.next() for _ in range(4)] == [
        {"WATCHDOG": "1"},
        {"STATUS": "6 OSTs"},
        {"EXTEND_TIMEOUT_USEC": "60000000"},
        {"STOPPING": "1"},
    ]
    assert manager.longest_wait_s(60) == WATCHDOG_S / 4
    manager.close()


def test_nobody_to_tell_and_nobody_who_reads_cost_nothing(tmp_path: Path) -> None:
    for environ in ({}, {"NOTIFY_SOCKET": str(tmp_path / "gone"), "WATCHDOG_USEC": "x"}):
        manager = ServiceManager(environ)
        manager.ready()
        manager.alive()
        assert manager.longest_wait_s(60) == 60
        manager.close()
    full = Systemd(str(tmp_path / "full"))
    manager = ServiceManager(full.environ)
    for _ in range(2000):
        manager.ready()  # nobody reads: more than its queue takes
    manager.close()
    full.socket.close()


class Plain(Service):
    """A daemon that notes what is asked of it."""

    USED = ("ossd.", "mdsd.requests")

    def __init__(self, wakeup: Wakeup, interval_s: float = 1e4) -> None:
        super().__init__(config.Settings(), wakeup)
        self.noted: list[str] = []
        self.ours, self.theirs = socket.socketpair()
        self.refuses = False
        self.interval_s = interval_s
        self.every(lambda: self.interval_s, lambda _: self.noted.append("work"))
        self.watch(self.ours.fileno(), lambda: self.noted.append(self.ours.recv(100).decode()))

    def begin(self) -> None:
        self.noted.append("begin")

    def take_over(self, settings: config.Settings) -> None:
        if self.refuses:
            raise ConfigError("ossd.interval_s", "another one", "this one")
        self.interval_s = settings.ossd.interval_s
        self.noted.append("take_over")

    def finish(self) -> None:
        self.theirs.send(b"the last word")
        assert self.ours.recv(100), "it is still open"
        self.noted.append("finish")

    def release(self) -> None:
        self.ours.close()
        self.theirs.close()
        self.noted.append("release")


@pytest.fixture
def plain() -> Iterator[Plain]:
    with Wakeup() as wakeup, contextlib.closing(Plain(wakeup)) as plain:
        yield plain


def while_it_turns(plain: Plain, *acts: Callable[[], object]) -> None:
    """Run its loop; another thread does one of these after the other, and then ends it by a signal."""
    failed: list[BaseException] = []

    def act() -> None:
        try:
            for each in acts:
                deadline = time.monotonic() + PATIENCE_S
                while each() is False:
                    assert time.monotonic() < deadline, plain.noted
                    time.sleep(0.01)
        except BaseException as error:
            failed.append(error)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=act)
    thread.start()
    plain.loop()
    thread.join()
    assert not failed, failed


def test_the_life_of_a_daemon(plain: Plain) -> None:
    """Nothing waits for its interval of hours."""
    while_it_turns(
        plain,
        lambda: "work" in plain.noted,
        lambda: plain.theirs.send(b"hello"),
        lambda: "hello" in plain.noted,
    )
    plain.close()
    assert plain.noted == ["begin", "work", "hello", "finish", "release"]


def test_settings_are_taken_over_as_a_whole_or_not_at_all(
    plain: Plain, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tarazu.daemons")
    new = config.override(config.Settings(), "ossd", interval_s=0.01)
    new = config.override(new, "mdsd", requests="tcp://mds9:1", cpu_limit=0.1)
    plain.read = lambda: config.override(new, "clientd", socket="/not/looked/at")

    def told() -> None:
        os.kill(os.getpid(), signal.SIGHUP)

    def refuse() -> None:
        plain.refuses = True

    while_it_turns(
        plain,
        told,
        lambda: plain.noted.count("work") > 3,  # the shorter interval holds at once
        refuse,
        told,
        lambda: len(caplog.messages) == 2,
    )
    assert caplog.messages == [
        "settings read again; after a restart only: mdsd.requests",
        "settings stay as they were: ossd.interval_s: expected another one, found 'this one'",
    ]
    assert plain.settings.ossd.interval_s == 0.01 and plain.settings.mdsd.requests != "tcp://mds9:1"
    assert plain.noted.count("take_over") == 1


def test_periodic_work_keeps_its_phase_and_skips_what_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=lambda: now[0]))
    interval_s, took_s, done = [10.0], [1.0], []

    def work(at: float) -> None:
        done.append(at)
        now[0] += took_s[0]

    every = Every(lambda: interval_s[0], work, first_s=5.0)
    for at in (100.0, 104.9, 105.5, 106.0, 115.0, 125.2):
        now[0] = at
        every.look()
    assert done == [105.5, 115.0, 125.2] and every.due == 135.0
    now[0] = 171.0  # suspended
    every.look()
    assert every.due == 175.0
    now[0], took_s[0] = 175.0, 10.0  # as long as its interval
    every.look()
    assert every.due == 195.0
    interval_s[0] = 2.0
    every.no_later()
    assert every.due == 187.0
    interval_s[0] = 60.0
    every.no_later()
    assert every.due == 187.0
    every.at_once()
    assert every.due == 185.0


def test_of_two_on_a_node_the_second_one_waits_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Wakeup() as wakeup:
        first, second, said = Plain(wakeup), Plain(wakeup), SaidOnce(module.log)

        def alone(one: Plain) -> bool:
            return one.alone(lambda: claim(tmp_path / "state", "another one"), "sets nothing", said)

        assert alone(first) and alone(first) and not alone(second) and not alone(second)
        [line] = caplog.messages
        assert line.startswith(f"{tmp_path}/state: another one: this one sets nothing, and tries again")
        first.close()
        assert alone(second)
        second.close()


PROGRAMS: dict[str, tuple[str, ...]] = {
    "ossd": ("tarazu.daemons.ossd.service",),
    **{
        f"ossd-{option}": ("tarazu.daemons.ossd.service", f"--{option}")
        for part in installed().values()
        for option in part.ossd
    },
    "mdsd": ("tarazu.daemons.mdsd.service",),
    "clientd": ("tarazu.daemons.clientd.service",),
}
for found in brought("programs", "PROGRAMS"):
    PROGRAMS |= found


def started(site: Site, program: str, *options: str, environ: dict[str, str]) -> subprocess.Popen[str]:
    """One of `PROGRAMS`, with its log in a file of its name."""
    name, *own = PROGRAMS[program]
    with (site.directory / f"{program}.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", name, "--config", str(site.config), *own, *options],
            stdout=log,
            stderr=log,
            text=True,
            env={
                **os.environ,
                "PYTHONWARNINGS": "error",
                "TARAZU_ROOT": f"{site.directory}/empty",
                **environ,
            },
        )
    site.processes.append(process)
    return process


def configure(site: Site) -> None:
    """With all that any of them needs, below the site's directory."""
    at = site.directory
    (at / "empty").mkdir()
    site.config.write_text(
        f"{site.config.read_text()}[run]\nstop_file = ''\n[clientd]\nsocket = '{at}/c.sock'\ndatabase = '{at}/db'\n"
        + "".join(settings(at) for settings in brought("programs", "settings"))
    )


def settings_lines(log: str) -> Sequence[str]:
    return [line for line in log.splitlines() if "settings " in line]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_is_ready_when_it_serves_rereads_and_ends_in_order(
    site: Site, program: str, tmp_path: Path
) -> None:
    systemd = Systemd(str(tmp_path / "notify"))
    configure(site)
    process = started(site, program, environ=systemd.environ)
    systemd.wait(lambda told: "READY" in told)
    settings = config.load(str(site.config))
    if program == "clientd":
        with socket.socket(socket.AF_UNIX) as asked:
            asked.connect(settings.clientd.socket)
    bound = {"mdsd": settings.mdsd.requests}
    for binds in brought("programs", "bound"):
        bound |= binds(settings)
    if program in bound:
        with socket.create_connection(("127.0.0.1", int(bound[program].rpartition(":")[2]))):
            pass
    for _ in range(2):
        systemd.wait(lambda told: "WATCHDOG" in told)
    text, log = site.config.read_text(), tmp_path / f"{program}.log"
    for new, said in (
        (text, "INFO: settings read again"),
        (f"{text}[nonsense]\n", "ERROR: settings stay as they were: "),
    ):
        site.config.write_text(new)
        process.send_signal(signal.SIGHUP)
        systemd.wait(lambda told: "RELOADING" in told)
        systemd.wait(lambda told: "READY" in told)
        assert said in settings_lines(log.read_text())[-1]
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    with contextlib.suppress(BlockingIOError):
        while True:
            systemd.next(0.0)  # said before it was stopped
    process.send_signal(signal.SIGCONT)
    systemd.wait(lambda told: "WATCHDOG" in told)
    process.send_signal(signal.SIGINT if program == "ossd" else signal.SIGTERM)
    systemd.wait(lambda told: "STOPPING" in told)
    assert process.wait(PATIENCE_S) == 0
    assert log.read_text().splitlines()[-1].endswith("INFO: stopped")
    systemd.socket.close()


@pytest.mark.parametrize("program", ["mdsd", "ossd"])
def test_a_program_that_cannot_begin_says_one_line_and_its_status(
    site: Site, program: str, tmp_path: Path
) -> None:
    site.config.write_text("[ossd]\ninterval_s = -1\n")
    process = started(site, program, environ={})
    assert process.wait(PATIENCE_S) == ConfigError.exit_status
    expected = f"{site.config}:2: [ossd] interval_s: expected a number above 0, found -1"
    assert (tmp_path / f"{program}.log").read_text() == f"tarazu-{program.partition('-')[0]}: {expected}\n"


HANGS = """
import argparse, threading, time
from tarazu.daemons import service

def elsewhere():
    while True:
        sum(range(100))

def hang():
    threading.Thread(target=elsewhere, daemon=True).start()
    print("hangs", flush=True)
    while True:
        time.sleep(60)

service.run("tarazu-any", argparse.Namespace(verbose=False, root=None, debug=False), hang)
"""


def test_a_daemon_that_the_watchdog_ends_dies_of_that_and_looks_at_no_running_thread() -> None:
    """Of SIGABRT, and not of SIGSEGV in the middle of its word: that walked through threads that ran on."""
    with subprocess.Popen(
        [sys.executable, "-c", HANGS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stdout.readline() == "hangs\n"
        for number in (signal.SIGSTOP, signal.SIGABRT, signal.SIGCONT):
            process.send_signal(number)
        said = process.communicate()[1]
    assert process.returncode == -signal.SIGABRT, said
    assert "Fatal Python error: Aborted" in said and "most recent call first" in said
    assert "\nThread 0x" not in said and not ("in hang" in said and "in elsewhere" in said), said
