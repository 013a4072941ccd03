"""tarazu-page as a process, with a real mdsd and a key of its own."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from tarazu import config
from tarazu.daemons.service import Wakeup
from tarazu.errors import ConfigError, Unavailable
from tarazu.parts.page.history import History
from tarazu.parts.page.service import Page
from tarazu.sim.testbed.processes import free_port
from tests.daemons.conftest import PATIENCE_S, Site, patiently


def started(site: Site, keys: Path) -> subprocess.Popen[str]:
    """It asks mdsd more often than is good for a real one."""
    environ, often = (
        {"TARAZU_KEYS_DIRECTORY": str(keys)},
        {f"parts.page.service.{name}_S": s for name, s in (("INTERVAL", 0.2), ("NOTED", 1.0))},
    )
    return site.start("page", module="tarazu.parts.page.service", environ=environ, constants=often)


def test_it_shows_what_mdsd_says_and_says_when_mdsd_is_silent(site: Site, tmp_path: Path) -> None:
    keys, state, port = tmp_path / "page-keys", tmp_path / "tarazu-page", free_port()
    keys.mkdir()
    for name in ("client.key", "server.pub"):
        shutil.copy(site.keys / name, keys)
    with site.config.open("a") as file:
        file.write(f"[clientd]\nsocket = '{tmp_path}/none'\n[part.page]\nlisten = '{port}'\n")
    mdsd = site.mdsd()
    site.ossd()
    site.wait_status(lambda status: status["file_systems"])
    page = started(site, keys)

    def text() -> str:
        with urlopen(f"http://127.0.0.1:{port}/") as answer:
            return str(answer.read().decode())

    patiently(lambda: "All well: 5 OSTs on 1 server." in text())
    with urlopen(f"http://127.0.0.1:{port}/status.json") as answer:
        found = json.load(answer)
    assert [t["index"] for t in found["overview"]["targets"]] == [0, 1, 2, 3, 4]
    assert f"{state}/results/week.json" in text()
    (state / "results").mkdir()
    (state / "results" / "week.json").write_text("[]")
    patiently(lambda: ">week</a>" in text())
    with Wakeup() as wakeup, pytest.raises(Unavailable, match="another tarazu-page"):
        Page(config.load(str(site.config)), wakeup)
    drains = tmp_path / "tarazu-drain"
    drains.mkdir()
    (drains / "held").touch()
    patiently(lambda: "drains: nothing is set" in text())
    mdsd.kill()
    patiently(lambda: "mdsd has not answered for" in text())
    assert "What follows is of" in text()
    with urlopen(f"http://127.0.0.1:{port}/osts/lustre-OST0000") as answer:
        assert "mdsd has not answered for" in answer.read().decode()
    mdsd = site.mdsd()
    patiently(lambda: "All well: 5 OSTs" in text())
    mdsd.kill()
    patiently(lambda: "mdsd has not answered for" in text())
    assert site.log("page").count("mdsd does not answer") == 1
    page.terminate()
    assert page.wait(PATIENCE_S) == 0
    kept = History(state / "history.db")
    assert kept.moments("lustre", [3], 600, time.time() - 1200, time.time())
    kept.close()


def test_a_server_that_falls_silent_is_one_problem_until_it_returns(site: Site, tmp_path: Path) -> None:
    keys, port = tmp_path / "page-keys", free_port()
    keys.mkdir()
    for name in ("client.key", "server.pub"):
        shutil.copy(site.keys / name, keys)
    settings = site.config.read_text().replace("[mdsd]\n", "[mdsd]\nstale_after_s = 1.5\n")
    assert "stale_after_s" in settings
    site.config.write_text(
        settings + f"[clientd]\nsocket = '{tmp_path}/none'\n[part.page]\nlisten = '{port}'\n"
    )
    site.mdsd()
    ossd = site.ossd()
    site.wait_status(lambda status: status["file_systems"])
    started(site, keys)

    def json_of() -> dict:
        with urlopen(f"http://127.0.0.1:{port}/status.json") as answer:
            return dict(json.load(answer))

    patiently(lambda: json_of()["overview"] and not json_of()["problems"])
    ossd.kill()
    patiently(lambda: [p["what"] for p in json_of()["problems"]] == ["oss1 is silent"])
    assert [p["command"] for p in json_of()["problems"]] == ["systemctl restart tarazu-ossd"]
    site.ossd()

    patiently(lambda: not json_of()["problems"])

    def page_of() -> str:
        with urlopen(f"http://127.0.0.1:{port}/servers/oss1") as answer:
            return str(answer.read().decode())

    patiently(lambda: "oss1 is well." in page_of())


def test_an_address_that_is_none_or_taken_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken, Wakeup() as wakeup:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listens = {str(taken.getsockname()[1]): Unavailable, "nonsense": ConfigError}
        for listen, error in listens.items():
            file = tmp_path / "tarazu.toml"
            file.write_text(f"[state]\ndirectory = '{tmp_path}'\n[part.page]\nlisten = '{listen}'\n")
            with pytest.raises(error, match=r"in use|host:port"):
                Page(config.load(file), wakeup)
