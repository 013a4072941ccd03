"""`tarazu top` beside a real mdsd: as text, as JSON, and on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import sys
import time
from collections.abc import Iterator

import pytest

from tarazu import cli, config
from tarazu.daemons.asking import overview_of, status_of
from tests.daemons.conftest import DATA, Site

TARAZU = [sys.executable, "-m", "tarazu"]
PATIENCE_S = 300.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("top"))
    try:
        site.configure(exclude=["lustre:1"])
        with site.config.open("a") as file:
            file.write(f"[clientd]\nsocket = '{site.directory / 'nobody'}'\n")
        site.mdsd()
        site.ossd(root=DATA / "oss")
        site.wait_status(lambda status: status["file_systems"])
        yield site
    finally:
        site.stop()


Capture = pytest.CaptureFixture[str]


def top(site: Site, capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    status = cli.main(["top", "--config", str(site.config), *arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_as_text_where_the_output_is_no_terminal(site: Site, capsys: Capture) -> None:
    status, text, _ = top(site, capsys, "--sort", "target")
    assert status == 0 and "\x1b" not in text
    assert "tarazu top  lustre: 1 OSS, 5 OSTs" in text
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[-5:]] == [f"lustre-OST000{n}" for n in range(5)]
    assert lines[-4].split()[2] == "excluded" and "·x···" in text
    assert top(site, capsys, "--once", "--problems")[1].splitlines()[-1].startswith("lustre-OST0001")


def test_ascii_where_the_output_takes_no_more(
    site: Site, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarazu.cli.top._knows_bars", lambda: False)
    text = top(site, capsys, "--once")[1]
    assert text.isascii() and ".x..." in text


def test_without_clientd_mdsd_is_asked_directly(site: Site) -> None:
    settings = config.load(site.config)
    site.wait_status(
        lambda status: status["file_systems"]["lustre"]["osts"][0]["writing_bytes_per_s"] is not None
    )
    assert "nobody: No such file" in status_of(settings)["clientd"]["unavailable"]
    found = overview_of(settings)
    assert [server.name for server in found.servers] == ["oss1"]
    assert [target.no_create for target in found.targets] == [False] * 5, "excluded is another thing"
    assert found.targets[0].moving_bytes_per_s == 0.0 and found.imbalances[0].load is None


def test_as_json(site: Site, capsys: Capture) -> None:
    found = json.loads(top(site, capsys, "--json")[1])
    assert [target["verdict"] for target in found["targets"]] == ["ok", "excluded", "ok", "ok", "ok"]
    assert found["servers"][0]["name"] == "oss1" and found["imbalances"][0]["fs_name"] == "lustre"


def test_a_filter_that_is_none_is_one_line(site: Site, capsys: Capture) -> None:
    status, text, error = top(site, capsys, "--once", "--filter", "size>3")
    assert (status, text) == (2, "") and error.startswith("tarazu top: filter: expected used")


def test_a_file_system_that_nobody_reports_is_one_line(site: Site, capsys: Capture) -> None:
    status, text, error = top(site, capsys, "--once", "-f", "scrtach")
    assert (status, text) == (2, "") and "expected one that an OSS reports (lustre), found 'scrtach'" in error
    assert top(site, capsys, "--once", "-f", "lustre")[0] == 0


def test_on_a_terminal_keys_change_the_screen_and_q_ends_it(site: Site) -> None:
    pid, master = pty.fork()
    if pid == 0:  # pragma: no cover - another process
        os.environ |= {"PYTHONIOENCODING": "utf-8", "TERM": "xterm"}
        os.execv(TARAZU[0], [*TARAZU, "top", "--config", str(site.config), "-t", "0.2"])
    seen = wait_for(master, "", "lustre-OST0004")
    assert "\x1b[?1049h" in seen
    os.write(master, b"c")
    seen = wait_for(master, seen, "CPU ")
    os.write(master, b"/nobody\r")
    seen = wait_for(master, seen, "0 of 0")
    os.write(master, b"q")
    wait_for(master, seen, "\x1b[?1049l")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(master)


@pytest.mark.parametrize("term", ["dumb", "nobody-knows-it"])
def test_once_as_text_where_the_terminal_cannot_be_drawn_on(site: Site, term: str) -> None:
    pid, master = pty.fork()
    if pid == 0:  # pragma: no cover - another process
        os.environ["TERM"] = term
        os.execv(TARAZU[0], [*TARAZU, "top", "--config", str(site.config)])
    assert "\x1b" not in wait_for(master, "", "lustre-OST0004")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(master)


def wait_for(master: int, seen: str, text: str) -> str:
    """All that the terminal got until it got `text`, after what was `seen`."""
    deadline, found = time.monotonic() + PATIENCE_S, ""
    while text not in found:
        assert select.select([master], [], [], max(0.0, deadline - time.monotonic()))[0], found[-2000:]
        found += os.read(master, 1 << 16).decode(errors="replace")
    return seen + found
