"""tarazu-page as a process, with a real mdsd and a key of its own."""

from __future__ import annotations

import json
import shutil
import socket
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from tarazu import config
from tarazu.daemons.service import Wakeup
from tarazu.errors import ConfigError, Unavailable
from tarazu.parts.page.ring import Ring
from tarazu.parts.page.service import Page
from tarazu.sim.testbed.processes import free_port
from tests.daemons.conftest import PATIENCE_S, Site, patiently


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
    page = site.start(
        "page", module="tarazu.parts.page.service", environ={"TARAZU_KEYS_DIRECTORY": str(keys)}
    )

    def text() -> str:
        with urlopen(f"http://127.0.0.1:{port}/") as answer:
            return str(answer.read().decode())

    patiently(lambda: "All well: 5 OSTs on 1 server." in text())
    with urlopen(f"http://127.0.0.1:{port}/status.json") as answer:
        found = json.load(answer)
    assert [t["index"] for t in found["overview"]["targets"]] == [0, 1, 2, 3, 4]
    assert found["imbalance"]["lustre"][0]["moments"]
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
    patiently(lambda: "mdsd has not answered since" in text())
    assert "What follows is of" in text() and "mdsd stopped answering" in text()
    with urlopen(f"http://127.0.0.1:{port}/osts/lustre-OST0000") as answer:
        one = answer.read().decode()
    assert "mdsd has not answered since" in one and "The first point comes at" in one
    mdsd = site.mdsd()
    patiently(lambda: "All well: 5 OSTs" in text() and "mdsd answers again" in text())
    mdsd.kill()
    patiently(lambda: "mdsd has not answered since" in text())
    assert site.log("page").count("mdsd does not answer") == 1
    page.terminate()
    assert page.wait(PATIENCE_S) == 0
    ring = Ring(state / "imbalance.db")
    assert ring.names() == ["lustre"] and len(ring.past.of("OST", "lustre-OST0003")) == 1
    assert len(ring.past.moments("lustre", [3], 600, time.time() - 1200, time.time())) >= 1, (
        "written at the end"
    )
    ring.close()


def test_a_server_that_falls_silent_is_one_problem_and_its_return_is_news(site: Site, tmp_path: Path) -> None:
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
    site.start("page", module="tarazu.parts.page.service", environ={"TARAZU_KEYS_DIRECTORY": str(keys)})

    def json_of() -> dict:
        with urlopen(f"http://127.0.0.1:{port}/status.json") as answer:
            return dict(json.load(answer))

    patiently(lambda: json_of()["overview"] and not json_of()["problems"])
    ossd.kill()
    patiently(lambda: [p["what"] for p in json_of()["problems"]] == ["oss1 is silent"])
    assert [p["command"] for p in json_of()["problems"]] == ["systemctl restart tarazu-ossd"]
    second = int(time.time())
    patiently(lambda: int(time.time()) > second)  # of what changes twice within a second the last is kept
    site.ossd()

    def last_two() -> list[tuple[str, str, str]]:
        """On a busy machine a report may be late at other times, too."""
        events = [e for e in json_of()["since_yesterday"] if e["kind"] == "server"]
        return [(e["name"], e["was"], e["now"]) for e in events][-2:]

    patiently(lambda: not json_of()["problems"])
    patiently(lambda: last_two() == [("oss1", "heard", "silent"), ("oss1", "silent", "heard")])

    def page_of() -> str:
        with urlopen(f"http://127.0.0.1:{port}/servers/oss1") as answer:
            return str(answer.read().decode())

    patiently(lambda: "oss1 is well, and so are its 5 OSTs." in page_of())


def test_an_address_that_is_none_or_taken_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken, Wakeup() as wakeup:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for number, (listen, error) in enumerate(
            ((f"127.0.0.1:{taken.getsockname()[1]}", Unavailable), ("nonsense", ConfigError))
        ):
            settings = config.override(config.Settings(), "part.page", listen=listen)
            with pytest.raises(error, match=r"in use|host:port"):
                Page(settings, wakeup, str(tmp_path / f"{number}"))
