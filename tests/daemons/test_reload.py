"""SIGHUP: what may change does, what may not is named, and a broken file changes nothing."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tarazu import config

from .conftest import Site, allocation, ask, patiently


def told(site: Site, daemon: str, process: subprocess.Popen[str], text: str) -> list[str]:
    """What the daemon says when it is told to read its settings again, from the configuration `text`."""
    site.config.write_text(text)
    before = len(site.log(daemon).splitlines())
    process.send_signal(signal.SIGHUP)

    def said() -> list[str]:
        return [line for line in site.log(daemon).splitlines()[before:] if "settings" in line]

    return [str(line) for line in patiently(said)]


def test_mdsd_takes_over_what_may_change(site: Site, tmp_path: Path) -> None:
    mdsd = site.mdsd()
    site.ossd()
    site.wait_status(lambda status: status["file_systems"])
    client, audit = site.client(), tmp_path / "audit2.log"
    assert ask(client, allocation("a1")).status == "allocated"
    text = site.config.read_text().replace(str(site.audit), str(audit))
    text = text.replace("cpu_limit = 1.0", "cpu_limit = 0.9\nexclude = ['lustre:0-2']\nstale_after_s = 77")
    text = text.replace("least_gain = -1.0", "least_gain = -1.0\nfill_budget = 0.25")
    text += "[run]\nonly_users = ['1000']\n"
    assert told(site, "mdsd", mdsd, text) == ["tarazu-mdsd: INFO: settings read again"]
    after = ask(client, allocation("a2"))
    assert {ost for file in after.osts for component in file for ost in component} == {3, 4}
    assert 'id="a2"' in audit.read_text()
    assert ask(client, allocation("a1")).osts, "kept replies outlive it"
    unwanted = ask(client, allocation("a3", uid=1001))
    assert (unwanted.status, unwanted.reason) == ("never", "run.only_users does not name uid 1001")
    status = site.status()
    assert status["gate"]["cpu_limit"] == 0.9 and status["weights"]["fill_budget"] == 0.25


def test_mdsd_keeps_its_settings_when_the_new_ones_cannot_be(site: Site) -> None:
    mdsd = site.mdsd()
    site.ossd()
    before = site.wait_status(lambda status: status["file_systems"])
    text = site.config.read_text()
    for change, reason in (
        (("cpu_limit = 1.0", "cpu_limit = 7"), "a share between 0 and 1"),
        (("cpu_limit = 1.0", "cpu_limit = = 7"), "TOML"),
        (("cpu_limit = 1.0", "cpu_limit = 0.0\nexclude = ['nonsense']"), "entries such as"),
        (("audit_log = '", "cpu_limit = 0.0\naudit_log = '/nowhere"), "a writable file"),
    ):
        new = text.replace("cpu_limit = 1.0\n", "") if "audit" in change[0] else text
        lines = told(site, "mdsd", mdsd, new.replace(*change))
        assert len(lines) == 1 and lines[0].startswith("tarazu-mdsd: ERROR: settings stay as they were: ")
        assert reason in lines[0]
        assert site.status()["gate"]["cpu_limit"] == before["gate"]["cpu_limit"]
    assert ask(site.client(), allocation()).status == "allocated" and site.audit.read_text()


def test_what_needs_a_restart_is_named_and_goes_on_as_it_was(site: Site) -> None:
    mdsd = site.mdsd()
    site.status()
    text = site.config.read_text().replace(site.requests, "tcp://127.0.0.1:1")
    said = told(site, "mdsd", mdsd, text.replace("[ossd]", "[clientd]\nsocket = '/x'\n[ossd]"))
    assert said == ["tarazu-mdsd: INFO: settings read again; after a restart only: mdsd.requests"]
    assert site.status()["daemon"] == "mdsd"


def test_ossd_takes_over_its_interval_at_once(site: Site) -> None:
    site.config.write_text(site.config.read_text().replace("interval_s = 0.1", "interval_s = 3600"))
    site.mdsd()
    ossd = site.ossd()
    site.wait_status(lambda status: status["osses"])
    told(site, "ossd", ossd, site.config.read_text().replace("interval_s = 3600", "interval_s = 0.1"))
    received = site.status()["statistics"]["received"]
    site.wait_status(lambda status: status["statistics"]["received"] > received + 2)


def test_clientd_keeps_its_settings_when_the_layouts_cannot_be_read(site: Site, tmp_path: Path) -> None:
    clientd = site.start(
        "clientd", "--socket", str(tmp_path / "clientd.sock"), "--database", str(tmp_path / "db")
    )
    patiently(lambda: "answers on" in site.log("clientd"))
    text = site.config.read_text()
    bad = told(site, "clientd", clientd, f"{text}[layout]\npfl_file = '{tmp_path}/none.pfl'\n")
    assert len(bad) == 1 and "settings stay as they were" in bad[0] and "none.pfl" in bad[0]
    good = told(site, "clientd", clientd, f"{text}[layout]\nmin_size = 7\n")
    assert good == ["tarazu-clientd: INFO: settings read again"]


def test_every_setting_that_is_reloaded_or_read_by_steps_is_one() -> None:
    for table in (config.RELOADED, config.READ_EACH_STEP):
        for section, names in table.items():
            assert names <= {field.name for field in dataclasses.fields(config.SECTIONS[section])}
    assert "- `mdsd.cpu_limit` = `0.7` (SIGHUP): " in config.table()
    assert '- `mdsd.requests` = `"tcp://127.0.0.1:5771"` (start): ' in config.table()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9100", ("127.0.0.1", 9100)),
        ("mds1:9100", ("mds1", 9100)),
        ("0.0.0.0:9100", ("0.0.0.0", 9100)),
        ("[::1]:9100", ("::1", 9100)),
        ("::1:9100", None),
        ("host", None),
        ("host:0", None),
        ("host:65536", None),
        ("", None),
    ],
)
def test_where_metrics_listen(text: str, expected: Any) -> None:
    assert config.listening(text) == expected
