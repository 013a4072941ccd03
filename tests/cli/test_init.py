"""`tarazu init`: an OSS, mdsd's node and a launch node are set up; what is there stays; what is missing is said."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tarazu import config
from tarazu.cli import init, main
from tarazu.wire import keys
from tests.daemons.conftest import Site, site

__all__ = ["site"]


class New:
    """A node that was never touched."""

    def __init__(self, directory: Path) -> None:
        self.keys, self.file = directory / "keys", directory / "etc/tarazu.toml"
        self.own = directory / "etc/conf.d" / init.FILE
        self.file.parent.mkdir()
        self.file.write_text(
            f'[keys]\ndirectory = "{self.keys}"\n[clientd]\nsocket = "{directory}/none.sock"\n'
        )

    def init(self, *words: str, status: int = 0) -> None:
        assert main(["init", "--config", str(self.file), *words]) == status

    def files(self) -> dict[str, tuple[bytes, int]]:
        found = [path for path in self.file.parents[1].rglob("*") if path.is_file()]
        return {str(path): (path.read_bytes(), path.stat().st_mode) for path in found}


@pytest.fixture
def new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> New:
    """Without systemd, as in a container."""
    monkeypatch.setenv("TARAZU_ROOT", str(tmp_path / "root"))
    monkeypatch.setattr(init.node.Node, "has_systemd", False)
    monkeypatch.setattr(init, "_runs", lambda unit: False)
    (tmp_path / "new").mkdir()
    return New(tmp_path / "new")


Said = Callable[[], str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    return lambda: "".join(capsys.readouterr())


def test_mdsds_node_gets_settings_and_keys_and_the_next_command(new: New, said: Said) -> None:
    new.init("--role", "mdsd", "--mdsd", "mds1")
    assert said().splitlines()[-1] == "next:      systemctl enable --now tarazu-mdsd"
    assert config.load(str(new.file)).mdsd.requests == "tcp://mds1:5771"
    assert stat.S_IMODE(new.own.stat().st_mode) == 0o644
    assert sorted(path.name for path in new.keys.iterdir()) == sorted(
        f"{role}.{end}" for role in keys.ROLES for end in ("key", "pub")
    )
    assert stat.S_IMODE((new.keys / "server.key").stat().st_mode) == 0o600


def test_a_second_time_nothing_is_changed(new: New, said: Said) -> None:
    new.init("--role", "mdsd", "--mdsd", "mds1")
    before = new.files()
    new.init("--role", "mdsd")
    assert new.files() == before and "settings:  in force already" in said()


def test_a_dry_run_changes_nothing(new: New, said: Said) -> None:
    before = new.files()
    new.init("--role", "mdsd", "--mdsd", "mds1", "--dry-run")
    assert new.files() == before
    told = said()
    assert f"would be written to {new.own}" in told and "would be made: server.key" in told
    assert 'requests = "tcp://mds1:5771"' in told


def test_a_launch_node_without_keys_hears_where_they_come_from(new: New, said: Said) -> None:
    new.init("--role", "launch", "--mdsd", "mds1", status=1)
    told, host = said(), os.uname().nodename.partition(".")[0]
    assert f"client.key and server.pub in {new.keys}" in told
    assert f"on mds1: tarazu config keys create client --name {host} --uids" in told
    assert f"scp mds1:{new.keys}/client-{host}.key {new.keys}/client.key" in told
    assert "systemctl" not in told


def test_what_another_file_says_is_not_overruled(new: New, said: Said) -> None:
    (new.own.parent).mkdir()
    (new.own.parent / "site.toml").write_text('[mdsd]\nrequests = "tcp://other:5771"\n')
    before = new.files()
    new.init("--role", "oss", "--mdsd", "mds1", status=2)
    assert (
        "site.toml:2: [mdsd] requests: expected tcp://mds1:5771, as --mdsd says" in said()
        and new.files() == before
    )


def test_its_own_file_is_replaced_on_request_alone_and_keeps_its_rights(new: New, said: Said) -> None:
    new.init("--role", "mdsd", "--mdsd", "mds1")
    new.own.chmod(0o640)
    new.init("--role", "mdsd", "--mdsd", "mds2", status=2)
    assert "--force to replace it" in said() and "mds1" in new.own.read_text()
    new.init("--role", "mdsd", "--mdsd", "mds2", "--force")
    assert "mds2" in new.own.read_text() and stat.S_IMODE(new.own.stat().st_mode) == 0o640


def test_whoever_is_asked_nothing_has_to_say_the_role(new: New, said: Said) -> None:
    new.init(status=2)
    assert "--role: expected one or several of oss, mdsd, launch" in said()


def test_with_closed_input_it_says_that_nobody_can_be_asked(new: New) -> None:
    """`tarazu init <&-`: no traceback, and no 'none' that nobody has typed."""
    for words, option in (((), "--role"), (("--role", "oss"), "--mdsd")):
        command = [sys.executable, "-m", "tarazu", "init", "--config", str(new.file), *words]
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2 and done.stderr.startswith(f"tarazu init: {option}: expected "), done
        assert done.stderr.endswith("standard input is no terminal, at which to ask\n"), done


def test_keys_that_are_copied_as_it_says_have_a_directory(
    new: New, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    new.init("--role", "oss", "--mdsd", "mds1", "--dry-run", status=1)
    assert f"{new.keys} would be made" in said() and not new.keys.exists()
    own = os.getuid() + 1 if os.getuid() == 0 else os.getuid()
    monkeypatch.setattr(init.node.Node, "daemon_ids", (own, os.getgid()))
    new.init("--role", "oss", "--mdsd", "mds1", status=1)
    told = said()
    assert new.keys.is_dir() and new.keys.stat().st_uid == own and f"{new.keys} was made" in told
    target = new.keys / "oss.key"
    assert f"scp mds1:{target} {target}" in told
    # A second time it is there.
    new.init("--role", "oss", "--mdsd", "mds1", "--json", status=1)
    assert json.loads(said())["directory"] == ""


def test_a_dry_run_with_nothing_to_do_says_what_comes_next(new: New, said: Said) -> None:
    new.init("--role", "mdsd", "--mdsd", "mds1")
    said()
    new.init("--role", "mdsd", "--dry-run")
    assert said().splitlines()[-1] == "next:      systemctl enable --now tarazu-mdsd"
    # What is missing here no run without --dry-run would make.
    new.init("--role", "mdsd", "--role", "launch", "--dry-run")
    (new.keys / "client.key").unlink()
    said()
    new.init("--role", "launch", "--dry-run", status=1)
    assert said().splitlines()[-1] == "next:      what is missing, then `tarazu init` again"


def test_the_role_follows_from_lustre(new: New, tmp_path: Path, said: Said) -> None:
    (tmp_path / "root/proc/fs/lustre/obdfilter/scratch-OST0000").mkdir(parents=True)
    (tmp_path / "root/proc/fs/lustre/obdfilter/scratch-OST0000/stats").write_text(
        "snapshot_time 1.0 secs.nsecs\n"
    )
    new.init("--mdsd", "mds1", "--dry-run", "--json", status=1)
    assert json.loads(said())["roles"] == ["oss"]


def test_people_are_asked(new: New, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["mdsd", "mds7"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: next(answers))
    new.init()
    assert config.load(str(new.file)).mdsd.statistics == "tcp://mds7:5770"


def test_the_way_to_a_real_mdsd_is_tried(
    new: New, site: Site, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An OSS and a launch node on mdsd's own node, for all is on loopback."""
    site.mdsd()
    site.wait_status(lambda status: True)
    shutil.copytree(site.keys, new.keys)
    settings = config.load(str(site.config)).mdsd
    with new.file.open("a") as file:
        file.write(f'[mdsd]\nstatistics = "{settings.statistics}"\nrequests = "{settings.requests}"\n')
    monkeypatch.setattr(init, "_runs", lambda unit: unit == "tarazu-mdsd")
    words = ["--role", "oss", "--role", "launch", "--role", "mdsd", "--mdsd", "127.0.0.1"]
    new.init(*words, "--json")
    told = json.loads(said())
    assert "admits this node" in told["connection"] and "mdsd: answers, up" in told["connection"]
    assert told["next"] == "systemctl enable --now tarazu-ossd tarazu-clientd"
    # Another site's key is reached, and not admitted.
    for path in new.keys.glob("*"):
        path.unlink()
    for role in keys.ROLES:
        keys.create(new.keys, role)
    new.init(*words, status=1)
    assert "does not admit this node's key" in said()
