"""The doctor's look at the daemons: with real ones, and with what they could say."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import Any

import pytest

from tarazu import config
from tarazu.cli import main
from tarazu.daemons.asking import status_of
from tarazu.doctor import peers
from tarazu.sim.testbed.processes import free_port
from tests.daemons.conftest import Site, site
from tests.doctor.conftest import Tree, verdicts

__all__ = ["site"]
ROOT = Path(__file__).parents[2]
NOBODY = f"tcp://127.0.0.1:{free_port()}"


def test_real_daemons_their_keys_and_their_clocks(
    tree: Tree, site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site.mdsd()
    told = site.wait_status(lambda status: True)
    tree.settings = config.load(site.config)
    tree.put("clientd", socket=str(tree.directory / "none.sock"))
    found = tree.look("peers", "oss", "mdsd", status=status_of(tree.settings))
    assert verdicts(found)["mdsd statistics"] == verdicts(found)["mdsd"] == verdicts(found)["clock"] == "ok"
    assert "no OSS" in found["OSSs"].found and "mdsd version" not in found
    assert site.wait_status(lambda status: status)["requests"]["refused"] == told["requests"]["refused"]
    # Another site's key: reached, not admitted.
    tree.with_keys("oss.key", "client.key")
    (tree.keys / "server.pub").write_bytes((site.keys / "server.pub").read_bytes())
    tree.put("keys", directory=str(tree.keys))
    monkeypatch.setattr(peers, "SUBSCRIBED_S", 0.4)
    found = tree.look("peers", "oss", "mdsd")
    assert "does not admit this node's key" in found["mdsd statistics"].found
    assert found["mdsd requests"].verdict == "fail"
    # The command as a whole: of a node that is well, and of one that it finds to be mdsd's, with nothing installed.
    unit = (ROOT / "tarazu/daemons/systemd/tarazu-mdsd.service").read_text()
    tree.write("usr/lib/systemd/system/tarazu-mdsd.service", unit)
    tree.write("usr/bin/tarazu-mdsd", "", 0o755)
    assert main(["doctor", "--config", str(site.config), "--root", str(tree.root), "--role", "mdsd"]) == 0
    assert " 0 fail, " in capsys.readouterr().out.splitlines()[-1]
    assert main(["doctor", "--config", str(site.config), "--root", str(site.mds_root), "--problems"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "mdsd" in lines[0] and "  FAIL  tarazu-mdsd: the unit is not installed" in lines


def test_nobody_there_and_addresses_of_loopback(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "SUBSCRIBED_S", 0.05)
    tree.put("mdsd", statistics=NOBODY, requests=NOBODY)
    found = tree.look("peers", "oss", "mdsd")
    assert "refused" in found["mdsd statistics"].found and "refused" in found["mdsd requests"].found
    tree.with_keys("oss.key")
    assert "server.pub" in tree.look("peers", "oss", "mdsd")["mdsd statistics"].found
    found = tree.look("peers", "oss", "launch")
    assert all("loopback" in each.found for each in found.values()) and len(found) == 2
    assert tree.look("peers", "oss")["mdsd requests"].verdict == "fail", "levers there ask mdsd"


STATUS: dict[str, Any] = {
    "clientd": {"version": "", "ready": True},
    "mdsd": {
        "uptime_s": 5.0,
        "ready": True,
        "osses": {"oss1": {"stale": False, "unreadable": []}},
        "gate": {"open": True},
    },
}


def test_what_the_daemons_tell_of_themselves(tree: Tree) -> None:
    status = copy.deepcopy(STATUS)
    status["clientd"]["version"] = "0.0.1"
    status["mdsd"] |= {
        "version": "0.0.1",
        "time_s": time.time() - 3600,
        "osses": {"oss1": {"stale": True, "unreadable": ["osd-*.*.brw_stats"]}},
        "gate": {"open": False, "why_closed": "memory"},
    }
    found = tree.look("peers", "launch", "mdsd", status=status)
    assert verdicts(found) == {
        "clientd": "ok",
        "clientd version": "warn",
        "mdsd": "ok",
        "mdsd version": "warn",
        "clock": "warn",
        "OSSs": "warn",
        "oss1": "warn",
        "gate": "warn",
    }
    status["mdsd"] |= {"osses": {}, "time_s": float("nan")}
    assert tree.look("peers", "launch", "mdsd", status=status)["clock"].verdict == "warn"
    status["clientd"] = {"unavailable": "no socket"}
    found = tree.look("peers", "launch", "mdsd", status=status)
    assert found["clientd"].verdict == "fail" and "no OSS" in found["OSSs"].found
    status["mdsd"] = {"unavailable": "silent"}
    assert tree.look("peers", "launch", "mdsd", status=status)["mdsd"].verdict == "fail"
