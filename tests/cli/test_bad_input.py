"""Bad input gives one line that names the place and what was expected, status 2, and changes nothing."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarazu.wire import keys

GARBAGE = b"\x00\xff\xfe garbage \x80\n" * 40


def command(*words: object, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TARAZU_")}
    argv = [sys.executable, "-m", *map(str, words)]
    return subprocess.run(
        argv, env=clean | (environ or {}), capture_output=True, text=True, timeout=300, check=False
    )


def one_line(done: subprocess.CompletedProcess[str], place: object) -> None:
    assert done.returncode == 2, done
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert str(place) in lines[0] and "expected" in lines[0], lines


def digest(folder: Path) -> dict[str, str]:
    return {
        str(p): hashlib.sha256(p.read_bytes()).hexdigest() + oct(p.stat().st_mode)
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A whole configuration of a client; each test breaks one part of it."""
    for role in keys.ROLES:
        keys.create(tmp_path / "keys", role)
    (tmp_path / "pfl.ini").write_text("[a]\nmatch = /a/*\ncomponents = 0-EOF:4\n")
    (tmp_path / "tarazu.toml").write_text(
        f'[keys]\ndirectory = "{tmp_path}/keys"\n[layout]\npfl_file = "{tmp_path}/pfl.ini"\n'
        f'[clientd]\nsocket = "{tmp_path}/sock"\ndatabase = "{tmp_path}/interaction.db"\n'
        f'[run]\nstate_dir = "{tmp_path}"\nmap_dir = "{tmp_path}/maps"\n'
    )
    return tmp_path


DAEMONS = ["tarazu.daemons.clientd.service", "tarazu.daemons.mdsd.service", "tarazu.daemons.ossd.service"]
SECRETS = ["client.key", "server.key", "oss.key"]


DAMAGES = ["missing", "garbage", "[layout]\nmin_size = 'x'\n", "[run]\nmoode = 'place'\n"]


@pytest.mark.parametrize(
    ("program", "damage"), [*((daemon, "garbage") for daemon in DAEMONS), *(("tarazu", d) for d in DAMAGES)]
)
def test_configuration(site: Path, program: str, damage: str) -> None:
    path = site / "tarazu.toml"
    path.unlink()
    if damage != "missing":
        path.write_bytes(GARBAGE if damage == "garbage" else damage.encode())
    before = digest(site)
    words = [program, "--config", path] if program != "tarazu" else [program, "config", "--config", path]
    one_line(command(*words), path)
    assert digest(site) == before


def test_run_with_a_broken_explicit_configuration_starts_nothing(site: Path) -> None:
    (site / "tarazu.toml").write_text("[run\n")
    done = command("tarazu", "run", "--config", site / "tarazu.toml", "--", "touch", site / "ran")
    one_line(done, site / "tarazu.toml")
    assert not (site / "ran").exists()


def test_a_broken_site_configuration_stops_no_job(site: Path) -> None:
    (site / "tarazu.toml").write_text("[run\n")
    environ = {"TARAZU_CONFIG": str(site / "tarazu.toml"), "HOME": str(site)}
    done = command("tarazu", "run", "--", "sh", "-c", "echo ran; exit 7", environ=environ)
    assert (done.returncode, done.stdout, done.stderr) == (7, "ran\n", "")


def test_a_mistake_in_the_settings_of_a_launch_node_is_told(site: Path) -> None:
    """The program is to run, and say nothing of it; its owner is to find out why nothing is recorded or placed."""
    environ = {"TARAZU_RUN_MODE": "plcae", "TARAZU_RUN_STATE_DIR": str(site / "state"), "HOME": str(site)}
    words = ["--", "sh", "-c", "echo ran; exit 7"]
    done = command("tarazu", "run", *words, environ=environ)
    assert (done.returncode, done.stdout, done.stderr) == (7, "ran\n", "")
    (line,) = (site / "state" / "jobs.log").read_text().splitlines()
    (logged,) = (site / "state" / "tarazu.log").read_text().splitlines()
    for said in (line, logged):
        assert "TARAZU_RUN_MODE" in said and "'plcae'" in said.replace("\\", "") and "expected" in said
    assert " app=sh mode=none why=" in line and "wrong settings: $TARAZU_RUN_MODE: " in line
    for words_of in (("job", "show"), ("history", "report", "--since", "1h")):
        shown = command("tarazu", *words_of, environ=environ | {"TARAZU_RUN_MODE": "place"}).stdout
        assert "wrong settings: $TARAZU_RUN_MODE: expected" in shown, shown
    done = command("tarazu", "run", "--debug", *words, environ=environ)
    assert (done.returncode, done.stdout) == (7, "ran\n") and "TARAZU_RUN_MODE" in done.stderr
    doctor = command("tarazu", "doctor", environ=environ)
    assert doctor.returncode != 0 and "TARAZU_RUN_MODE" in doctor.stdout + doctor.stderr


def test_a_home_that_cannot_be_written_to_keeps_no_program_from_running(site: Path) -> None:
    environ = {"TARAZU_RUN_MODE": "plcae", "HOME": "/proc/nothing"}
    done = command("tarazu", "run", "--", "sh", "-c", "exit 7", environ=environ)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


@pytest.mark.parametrize("text", ["garbage", "[a]\nmatch = /a\ncomponents = 0-1G:3\n"])
def test_pfl_file(site: Path, text: str) -> None:
    (site / "pfl.ini").write_bytes(GARBAGE if text == "garbage" else text.encode())
    before = digest(site)
    one_line(command("tarazu.daemons.clientd.service", "--config", site / "tarazu.toml"), site / "pfl.ini")
    assert digest(site) == before


@pytest.mark.parametrize(
    ("program", "name", "damage"),
    [
        *((daemon, secret, "world-readable") for daemon, secret in zip(DAEMONS, SECRETS, strict=True)),
        (DAEMONS[0], SECRETS[0], "garbage"),
        (DAEMONS[0], SECRETS[0], "short"),
    ],
)
def test_keys(site: Path, program: str, name: str, damage: str) -> None:
    path = site / "keys" / name
    if damage == "world-readable":
        path.chmod(0o644)
    else:
        path.write_bytes(GARBAGE if damage == "garbage" else path.read_bytes()[:-5])
    before = digest(site)
    one_line(command(program, "--config", site / "tarazu.toml"), path)
    assert digest(site) == before


@pytest.mark.parametrize("content", [GARBAGE, b"SQLite format 3\0" + bytes(4096)])
def test_database(site: Path, content: bytes) -> None:
    path = site / "interaction.db"
    path.write_bytes(content)
    before = digest(site)
    if content == GARBAGE:  # a damaged database is set aside by clientd, which goes on
        one_line(command("tarazu.daemons.clientd.service", "--config", site / "tarazu.toml"), path)
    one_line(command("tarazu", "history", "db", "show", "--database", path), path)
    assert digest(site) == before


def test_a_malformed_run_is_named_and_skipped(site: Path) -> None:
    folder = site / "history" / "lustre" / "ior"
    folder.mkdir(parents=True)
    (folder / "20260101T000000.000000-0.run").write_bytes(GARBAGE)
    before = digest(site)
    done = command("tarazu", "history", "list", "--config", site / "tarazu.toml")
    assert done.returncode == 0 and str(folder) in done.stderr and "expected" in done.stderr
    assert digest(site) == before


def test_placement_map(site: Path) -> None:
    (site / "map.1").write_bytes(GARBAGE)
    one_line(command("tarazu", "job", "map", "show", site / "map.1"), site / "map.1")
    one_line(command("tarazu", "job", "map", "show", site / "none"), site / "none")


def test_an_unknown_command() -> None:
    done = command("tarazu", "sho")
    assert done.returncode == 2 and "expected a command among run" in done.stderr
