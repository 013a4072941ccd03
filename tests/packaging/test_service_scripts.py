"""What packages do when they come and go, run by a real shell with stand-ins for systemd's programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import service_scripts
import tree

UNITS = sorted(tree.UNITS.glob("tarazu-mdsd.service")) + sorted(tree.UNITS.glob("tarazu-clientd.service"))


def called(script: str, folder: Path, *words: str) -> list[str]:
    """What the script told systemctl and systemd-sysusers, where systemd runs."""
    log = folder / "log"
    log.write_text("")
    for name in ("systemctl", "systemd-sysusers"):
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{log}\n')
        (folder / name).chmod(0o755)
    script = script.replace(service_scripts.SYSTEMD, "true")
    subprocess.run(
        ["sh", "-ec", script, "sh", *words], check=True, env={"PATH": f"{folder}:/usr/bin:/bin"}, timeout=300
    )
    return log.read_text().splitlines()


@pytest.mark.parametrize("before", ["", "0.0.9"])
def test_nothing_is_enabled_or_started_by_itself(before: str, tmp_path: Path) -> None:
    script = service_scripts.came(True, UNITS, upgraded='[ -n "$2" ]')
    lines = called(script, tmp_path, "configure", before)
    assert lines[:2] == ["systemd-sysusers tarazu.conf", "systemctl daemon-reload"]
    # What was stopped stays stopped.
    assert lines[2:] == (
        ["systemctl try-restart tarazu-mdsd.service tarazu-clientd.service"] if before else []
    )


def test_services_end_before_their_files_go(tmp_path: Path) -> None:
    lines = called(service_scripts.goes(UNITS), tmp_path)
    assert lines == ["systemctl --no-reload disable --now tarazu-mdsd.service tarazu-clientd.service"]


def test_a_purge_takes_what_units_and_users_have_made() -> None:
    assert service_scripts.directories(UNITS) == ["/run/tarazu", "/var/lib/tarazu", "/var/log/tarazu"]
    users = service_scripts.users(tree.UNITS / "tarazu.sysusers")
    text = service_scripts.purged(users, True, sorted(tree.UNITS.glob("*.service")))
    assert "tarazu" in users
    for each in (
        *(f"userdel {name}" for name in users),
        "/etc/tarazu",
        "/dev/shm/tarazu-*",
    ):
        assert each in text
    subprocess.run(["sh", "-n", "-c", text], check=True)


def test_a_user_who_cannot_be_deleted_does_not_keep_the_package(tmp_path: Path) -> None:
    for name, status in (("userdel", 8), ("getent", 0), ("rm", 0)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    text = service_scripts.purged(["tarazu"], False, [])
    subprocess.run(["/bin/sh", "-ec", text], check=True, env={"PATH": str(tmp_path)}, timeout=300)


def test_a_tree_without_systemd_says_which_users_are_missing(tmp_path: Path) -> None:
    script = service_scripts.came(True, [], upgraded="false")
    done = subprocess.run(["/bin/sh", "-ec", script], check=True, env={"PATH": "/"}, stderr=subprocess.PIPE)
    assert b"make the users of sysusers.d/tarazu.conf" in done.stderr
