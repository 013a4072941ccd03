"""Moves as text."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tarazu.layout.setstripe import parse_layout
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.parts.rebalance.files import Shape
from tarazu.parts.rebalance.orders import MoveOrder, command, options, script, throttle, write_script


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.12.9", ""),
        ("lustre: 2.15.7_1_gabc\n", ""),
        ("2.16.1\n", "-W 100M"),
        ("2.17.57", "-W 100M"),
        ("?", "-W 100M"),
    ],
)
def test_a_lustre_without_the_option_is_not_given_it(tmp_path: Path, version: str, expected: str) -> None:
    place = tmp_path / "sys/fs/lustre"
    place.mkdir(parents=True)
    (place / "version").write_text(version)
    assert throttle(100 * 2**20, tmp_path) == expected
    shown = command(MoveOrder("/f o", 1, 1, "-c 1", "-c 2"), expected)
    assert shown == " ".join(["lfs migrate --non-block", *([expected] if expected else []), "-c 2 '/f o'"])


def test_components_without_objects_get_no_list() -> None:
    layout = Layout(
        (Component(0, 1 << 20, 1 << 20, 1), Component(1 << 20, EOF, 1 << 20, 2, pool="flash")), True
    )
    text = options(Shape(layout, (True, False)), [7])
    assert text == "-E 1M -c 1 -S 1M -o 7 -E -1 -c 2 -S 1M -p flash"
    both = options(Shape(layout, (True, True)), [7, 3, 4])
    assert parse_layout(both) == (layout, ((7,), (3, 4)))


def test_a_name_that_a_terminal_would_obey_is_printed_as_bash_reads_it(tmp_path: Path) -> None:
    """Whoever made the file is not who reads the advice, as root."""
    name = "a\x1b]0;owned\x07 '$(id)'\\\n\udcff"
    printed = command(MoveOrder(name, 1, 1, "-c 1", "-c 2"), "")
    assert printed.replace("\udcff", "").isprintable()
    script = os.fsencode(printed.replace("lfs migrate", "printf %s\\\\n", 1))
    words = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
    assert words == b"--non-block\n-c\n2\n" + os.fsencode(name) + b"\n"


@pytest.mark.parametrize(
    ("version", "helps", "limited"),
    [("2.15.8", "", False), ("2.16.1", "", True), ("2.17.0", "[--bandwidth|-W BANDWIDTH_MB[MG]]", True)],
)
def test_the_script_limits_the_rate_wherever_lfs_can(
    tmp_path: Path, version: str, helps: str, limited: bool
) -> None:
    """The help of 2.16's `lfs migrate` does not name the option that it has."""
    moved, lfs, path = tmp_path / "f", tmp_path / "lfs", tmp_path / "move.sh"
    moved.write_text("x")
    lfs.write_text(
        f"#!/bin/sh\ncase $1-$2 in\n--version-*) echo lfs {version};;\n"
        f"help-*|migrate--*help) echo 'usage: migrate {helps}';;\nmigrate-*) echo \"$@\";;\nesac\n"
    )
    lfs.chmod(0o755)
    order = MoveOrder(str(moved), 1, int(moved.stat().st_mtime), "-c 1 -o 1", "-c 1 -o 2")
    write_script(path, script([order], 100 * 2**20, [], str(tmp_path / "stop")))
    env = {"LFS": str(lfs), "PATH": os.environ["PATH"]}
    done = subprocess.run(["bash", str(path)], env=env, capture_output=True, text=True, check=True)
    limit = " -W 100M" if limited else ""
    assert done.stdout.splitlines()[0] == f"migrate --non-block{limit} -c 1 -o 2 {moved}"


def test_a_file_whose_lease_could_not_be_had_does_not_stand_as_begun(tmp_path: Path) -> None:
    """Somebody has it open for writing; undo has nothing to take back of it, and still takes back what was moved."""
    busy, lfs, path = tmp_path / "busy", tmp_path / "lfs", tmp_path / "move.sh"
    lfs.write_text(
        f'#!/bin/sh\n[ "$1$2" = migrate--non-block ] || exit 0\nfor file; do :; done\necho "$@" >> {tmp_path}/calls\n'
        f'[ ! -e {busy} ] || [ "$(cat {busy})" != "$file" ] ||\n'
        '    { echo "cannot get lease: Device or resource busy" >&2; exit 1; }\n'
    )
    lfs.chmod(0o755)
    orders = []
    for name in "ab":
        (tmp_path / name).write_text("x")
        modified_s = int((tmp_path / name).stat().st_mtime)
        orders.append(MoveOrder(str(tmp_path / name), 1, modified_s, "-c 1 -o 1", "-c 1 -o 2"))
    write_script(path, script(orders, 100 * 2**20, [], str(tmp_path / "stop")))

    def run(what: str, busy_file: str = "") -> list[str]:
        """What each file is by then."""
        busy.write_text(busy_file and f"{tmp_path}/{busy_file}")
        env = {"LFS": str(lfs), "PATH": os.environ["PATH"]}
        for word in (what, "list"):
            done = subprocess.run(["bash", path, word], env=env, capture_output=True, text=True, check=True)
        return [line.split("\t")[1] for line in done.stdout.splitlines()]

    assert run("move", "a") == ["left", "moved"]
    assert run("move") == ["moved", "moved"], "it is tried again"
    assert run("undo", "b") == ["back", "moved"]
    assert run("undo") == ["back", "back"]
    assert run("move", "a") == ["back", "moved"]
    (tmp_path / "calls").unlink()
    assert run("undo") == ["back", "back"]
    assert len((tmp_path / "calls").read_text().splitlines()) == 1, (
        "nothing is taken back of what was not moved"
    )
