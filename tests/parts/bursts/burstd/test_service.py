"""tarazu-burstd on real sockets with keys."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu import config
from tarazu.daemons.service import Wakeup
from tarazu.errors import BadInput, Unavailable
from tarazu.parts.bursts import status as at_home
from tarazu.parts.bursts.burstd import here
from tarazu.parts.bursts.burstd.service import BurstService
from tarazu.parts.bursts.traffic import days
from tarazu.sim.testbed.processes import free_port
from tarazu.wire import keys
from tarazu.wire.reports import ClientRate, OssReport
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tests.daemons.conftest import PATIENCE_S


class Site:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.keys = directory / "keys"
        for role in keys.ROLES:
            keys.create(self.keys, role)
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.services: list[BurstService] = []

    def settings(self, **own: object) -> config.Settings:
        path = self.directory / "tarazu.toml"
        own = {
            "statistics": self.address,
            "socket": str(self.directory / "socket"),
            **own,
        }
        path.write_text(
            f"[keys]\ndirectory = '{self.keys}'\n[state]\ndirectory = '{self.directory}'\n"
            "[run]\nstop_file = ''\n[part.bursts]\n"
            + "".join(f"{key} = {value!r}\n" for key, value in own.items())
        )
        return config.load(str(path))

    def service(self, **own: object) -> BurstService:
        self.services.append(BurstService(self.settings(**own), Wakeup()))
        return self.services[-1]

    def close(self) -> None:
        for service in self.services:
            service.close()
            service.wakeup.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.close()


def status(site: Site) -> dict[str, Any]:
    """As it is written beside the loop."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := at_home.told(site.settings())):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def test_a_second_one_ends_and_the_first_tells_how_it_is(site: Site) -> None:
    service = site.service()
    with pytest.raises(Unavailable):
        BurstService(site.settings(), service.wakeup)
    service.do_due()
    assert status(site)["history"]["jobs"] == 0


def report(sequence: int, sent_s: float, *clients: ClientRate) -> OssReport:
    return OssReport(
        oss="oss1",
        sequence=sequence,
        sent_s=sent_s,
        interval_s=10.0,
        cpu_load=0,
        memory_load=0,
        lnet_bytes_per_s=0,
        osts=(),
        clients=clients,
        incarnation=1,
    )


def test_reports_of_osss_become_traffic_on_disk_and_others_are_refused(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = site.service()
    ends = []
    for role in ("client", "oss"):
        transport = ZmqTransport(curve_for(role, site.keys))
        end = transport.publisher(site.address)
        ends.append((transport, end))
    deadline, sequence, at_s = time.monotonic() + PATIENCE_S, 0, time.time()
    assert service.subscriber is not None
    while service.reports.taken < 3:
        assert time.monotonic() < deadline
        sequence += 1
        for i, (_, end) in enumerate(ends):
            end.publish(report(sequence, time.time(), ClientRate("10.0.0.1@tcp", 100, 10 * i)))
        service.transport.wait(0.02)
        service.turn(time.monotonic())
    for transport, _ in ends:
        transport.close()
    taken = service.reports.taken
    service.save(time.time(), all_of_it=True)
    service.history.step(time.time())
    chunks = list(days.read(here.traffic(site.settings()), at_s - 60, time.time()))
    assert {chunk.nodes for chunk in chunks} == {("10.0.0.1@tcp",)}
    assert sum(int(c.written.sum()) for c in chunks) == 100 * taken
    assert sum(int(c.read.sum()) for c in chunks) == 10 * taken, "only of the OSS"


_STATS = "snapshot_time 1795166319.8 secs.nsecs\nwrite_bytes {n} samples [bytes] 1 1048576 {bytes}\n"


class Oss:
    """A server's statistics below a root, and an ossd that reads them."""

    def __init__(self, site: Site) -> None:
        self.root = site.directory / "oss"
        self.stats = self.root / "sys/kernel/debug/lustre/obdfilter/lustre-OST0000/exports/10.0.0.1@tcp/stats"
        self.stats.parent.mkdir(parents=True)
        self.written = 0
        self.write(0)

    def write(self, bytes_: int) -> None:
        self.written += bytes_
        beside = self.stats.with_name("new")
        beside.write_text(_STATS.format(n=self.written // 1000, bytes=self.written))
        beside.rename(self.stats)


@pytest.mark.long
def test_a_kill_loses_what_was_not_written_yet_and_no_more(site: Site) -> None:
    """Real ossd, real daemon, which writes more often here than elsewhere."""
    quick = (
        "import sys; from tarazu.parts.bursts.burstd import reports, service;"
        "service.SAVE_S = 0.3; service.LOOK_S = 0.05; reports.SLACK_S = 0.1; sys.exit(service.main(sys.argv[1:]))"
    )
    oss = Oss(site)
    site.settings(interval_s=1.0)
    file = site.directory / "tarazu.toml"
    file.write_text(file.read_text() + "[ossd]\ninterval_s = 0.2\nexports = true\n")
    directory = here.traffic(config.load(str(file)))
    processes: list[subprocess.Popen[bytes]] = []

    def start(*command: str) -> subprocess.Popen[bytes]:
        with (site.directory / "log").open("ab") as log:
            processes.append(
                subprocess.Popen([sys.executable, *command, "--config", str(file)], stdout=log, stderr=log)
            )
        return processes[-1]

    def on_disk() -> int:
        return sum(int(chunk.written.sum()) for chunk in days.read(directory, 0, 1e12))

    def until(holds: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, (site.directory / "log").read_text()
            oss.write(1000)
            time.sleep(0.05)

    try:
        start("-m", "tarazu.daemons.ossd.service", "--root", str(oss.root))
        daemon = start("-c", quick)
        until(lambda: on_disk() > 5000)
        daemon.kill()
        daemon.wait()
        before = on_disk()
        daemon = start("-c", quick)
        until(lambda: on_disk() > before + 5000)
        daemon.terminate()
        assert daemon.wait(PATIENCE_S) == 0
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert (
        before + 5000 < on_disk() <= oss.written and "Traceback" not in (site.directory / "log").read_text()
    )


def test_it_has_figures_and_a_line_in_tarazu_status(site: Site) -> None:
    service = site.service()
    service.reports.take(report(1, time.time(), ClientRate("10.0.0.1@tcp", 100, 10)), time.time())
    service.turn(time.monotonic())
    values = {family.name: family.samples.get(()) for family in service.figures()}
    assert values["bursts_senders"] == values["bursts_reports"] == 1
    assert values["bursts_unknown_nids"] == values["bursts_writable"] == 1
    service.do_due()
    told = status(site)
    (line,) = at_home.lines(told)
    assert "1 sender, 1 node (1 NID unknown), 0 jobs (0 run)" in line and "with keys" in line
    assert at_home.lines(told, time.time() + 99)[0].endswith("silent for 99 s")
    assert "ahead" in at_home.lines(told, time.time() - 1e7)[0], (
        "it is not up for as long as its clock was ahead"
    )
    told["slurm"]["problem"], told["history"]["trouble"], told["history"]["lost_rows"] = "p", "t", 3
    assert [text.strip().partition(" ")[0] for text in at_home.lines(told)[1:]] == ["jobs", "not", "3"]


def test_settings_are_read_again(site: Site) -> None:
    service = site.service()
    (site.directory / "machine").write_text("n[1-4] cabinet=a io_node=r1\n")
    service.take_over(site.settings(machine=str(site.directory / "machine"), intensive=5, limit=7))
    assert service.machine is not None and service.history.machine is service.machine
    assert (service.history.limits.intensive, service.history.limit_bytes) == (5, 7)
    with pytest.raises(BadInput):
        service.take_over(site.settings(machine="/nowhere"))
    assert service.history.limits.intensive == 5


def test_what_was_not_there_at_the_start_was_missed_for_ever(site: Site) -> None:
    path = site.directory / "machine"
    path.write_text("n[1-4] cabinet=a io_node=r1\n")
    service = site.service(machine=str(path))
    notes = site.directory / "tarazu-burstd/changes.json"
    notes.write_text("?")
    service.start_nodes()
    assert not service.nodes
    notes.unlink()
    path.write_text("n[1-8] cabinet=a io_node=r1\n")
    service._look_around()
    assert service.machine is not None and len(service.machine.nodes) == 8
    for each in service._due:
        each.at_once()
    service.do_due()
    assert service.nodes
    path.write_text("?")
    service._topology_at = 0.0
    service._look_around()
    assert len(service.machine.nodes) == 8, "what was known stays"


def test_notes_that_cannot_be_read_cost_no_traffic(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    service = site.service()
    (site.directory / "tarazu-burstd/changes.json").write_text("?")
    service.start_nodes()
    assert not service.nodes and "Slurm is not answered" in caplog.text
    assert not (site.directory / "socket").exists()
    service.start_nodes()
    assert caplog.text.count("Slurm is not answered") == 1
    service.turn(service.started)
