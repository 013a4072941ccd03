"""ossd as a process: small, patient, and of use from the command line."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tarazu import config
from tarazu.daemons.ossd.service import Ossd
from tarazu.daemons.service import Wakeup
from tests.daemons.conftest import DATA, PATIENCE_S, Site, patiently

MAX_RSS_KIB = 40 * 1024


def rss_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise AssertionError("no VmHWM")


def run_ossd(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tarazu.daemons.ossd.service", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def received(more_than: int) -> Any:
    return lambda status: status["statistics"]["received"] > more_than


def test_it_stays_below_40_mb_while_publishing(site: Site) -> None:
    site.mdsd()
    ossd = site.ossd()
    site.wait_status(received(10))
    assert rss_kib(ossd.pid) < MAX_RSS_KIB


def test_it_loads_nothing_heavy() -> None:
    code = (
        "import sys, tarazu.daemons.ossd.service; from tarazu.part import installed\n"
        "[part.in_ossd(option) for part in installed().values() for option in part.ossd]\n"
        "heavy = {'numpy', 'networkx', 'ortools', 'pandas', 'statsmodels', 'scipy', 'matplotlib'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_it_waits_for_mdsd_and_survives_its_death(site: Site) -> None:
    ossd = site.ossd()
    first = site.mdsd()
    site.wait_status(received(2))
    first.send_signal(signal.SIGKILL)
    first.wait()
    site.mdsd()
    site.wait_status(received(2))
    assert ossd.poll() is None and "Traceback" not in site.log("ossd")


def test_killed_and_restarted_it_is_heard_again(site: Site) -> None:
    site.mdsd()
    first = site.ossd()
    site.wait_status(received(2))
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = site.status()["statistics"]["received"]
    site.ossd()
    status = site.wait_status(received(before + 2))
    assert list(status["osses"]) == ["oss1"] and len(status["file_systems"]["lustre"]["osts"]) == 5


def test_no_start_of_ossd_counts_a_late_report(site: Site) -> None:
    site.mdsd()
    before = 0
    for _ in range(3):
        ossd = site.ossd()
        status = site.wait_status(received(before + 2))
        before = status["statistics"]["received"] + 1
        ossd.terminate()
        assert ossd.wait(PATIENCE_S) == 0
        assert not status["osses"]["oss1"]["late"]


def test_one_bad_source_disables_only_itself(site: Site, tmp_path: Path) -> None:
    root = tmp_path / "oss"
    shutil.copytree(DATA / "oss", root)
    (root / "sys/kernel/debug/lnet/stats").write_text("garbage\n")
    site.mdsd()
    site.ossd(root=root)
    status = site.wait_status(received(5))
    assert status["osses"]["oss1"]["unreadable"] == ["lnet.stats"]
    assert len(status["file_systems"]["lustre"]["osts"]) == 5
    assert site.log("ossd").count("lnet.stats is left out") == 1


def test_several_servers_and_a_failover(site: Site, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(DATA / "oss", other)
    for path in sorted(other.rglob("lustre-OST*"), reverse=True):
        path.rename(path.with_name(path.name.replace("OST000", "OST001")))
    site.mdsd()
    first = site.ossd("oss1")
    site.ossd("oss2", other)

    def owners(status: dict[str, Any]) -> list[str]:
        return [ost["oss"] for fs in status["file_systems"].values() for ost in fs["osts"]]

    site.wait_status(lambda status: owners(status) == ["oss1"] * 5 + ["oss2"] * 5)
    first.terminate()
    assert first.wait(PATIENCE_S) == 0
    site.ossd("oss3")
    site.wait_status(lambda status: owners(status) == ["oss3"] * 5 + ["oss2"] * 5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly_without_mdsd_too(site: Site, number: signal.Signals) -> None:
    ossd = site.ossd()
    patiently(lambda: "publishes to" in site.log("ossd"))
    ossd.send_signal(signal.SIGHUP)
    ossd.send_signal(number)
    assert ossd.wait(PATIENCE_S) == 0
    assert site.log("ossd").splitlines()[-1] == "tarazu-ossd: INFO: stopped"


def test_one_report_as_json_and_as_text(tmp_path: Path) -> None:
    arguments = ("--once", "--root", str(DATA / "oss"), "--name", "oss9", "--interval", "0.05")
    result = run_ossd(*arguments, "--json")
    assert result.returncode == 0 and result.stderr == ""
    report = json.loads(result.stdout)
    assert report["oss"] == "oss9" and len(report["osts"]) == 5 and report["sequence"] == 2
    text = run_ossd(*arguments).stdout
    assert text.startswith("oss9: CPU 0%, memory 25%") and "lustre-OST0004: " in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--interval", "0"), "--interval: expected a number of seconds above 0, found 0.0"),
        (("--config", "/nowhere.toml"), "/nowhere.toml: expected a readable configuration file"),
        (("--mdsd", "tcp://mds1:5770"), "tcp://mds1:5770: expected CURVE keys"),
        (("--mdsd", "tcp://127.0.0.1"), "expected a port from 0 to 65535"),
    ],
)
def test_bad_settings_are_one_line_and_status_2(
    tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    result = run_ossd("--keys", str(tmp_path), *arguments)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1 and says in result.stderr


def test_a_key_that_others_can_read_is_one_line_and_status_2(site: Site) -> None:
    (site.keys / "oss.key").chmod(0o644)
    result = run_ossd("--config", str(site.config))
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1
    assert "oss.key: expected a secret key that others cannot read" in result.stderr


def test_a_refused_oss_is_counted_and_told(site: Site, tmp_path: Path) -> None:
    site.mdsd()
    site.status()
    shutil.copytree(site.keys, tmp_path / "wrong")
    from tarazu.wire import keys

    keys.create(tmp_path / "wrong", "oss", force=True)
    site.start("ossd", "--name", "oss1", "--root", str(DATA / "oss"), "--keys", str(tmp_path / "wrong"))
    status = site.wait_status(lambda status: status["statistics"]["refused"] > 0)
    assert status["file_systems"] == {}
    site.ossd("oss2")
    site.wait_status(lambda status: list(status["osses"]) == ["oss2"])
    assert "refuses this node's key" in site.log("ossd")


def test_a_name_that_came_after_the_start_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TARAZU_ROOT", str(tmp_path))
    wakeup = Wakeup()
    ossd = Ossd(config.Settings(), wakeup)
    try:
        monkeypatch.setattr("socket.gethostname", lambda: "oss7")
        ossd._report(1.0)
        assert ossd.collector.oss_name == "oss7"
    finally:
        ossd.close()
        wakeup.close()
