"""Whether other nodes see a directory, as the mounts say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tarazu.run import directories


@pytest.mark.parametrize(
    ("line", "kind"),
    [("- nfs4 server:/home rw", "nfs4"), ("- ext4 /dev/sda1 rw", "ext4"), ("- lustre n@o:/fs rw", "lustre")],
)
def test_a_directory_is_of_the_kind_that_the_mounts_say(tmp_path: Path, line: str, kind: str) -> None:
    device = os.stat(tmp_path).st_dev
    numbers = f"{os.major(device)}:{os.minor(device)}"
    table = tmp_path / "mountinfo"
    table.write_text(f"20 1 0:1 / / rw - rootfs none rw\n21 20 {numbers} / /a rw shared:1 {line}\n")
    assert directories.file_system_type(tmp_path / "not" / "there", table) == kind
    table.write_text(f"20 1 0:1 / / rw - rootfs none rw\n21 20 0:9999 / {tmp_path.parent} rw {line}\n")
    assert directories.file_system_type(tmp_path, table) == kind, "files of some have other device numbers"
    assert directories.file_system_type(tmp_path, tmp_path / "none") == ""


def test_a_mount_point_may_have_blanks_of_any_kind(tmp_path: Path) -> None:
    point = tmp_path / "My Project\tof\u00a0all\u2028\x0c\\"
    point.mkdir()
    octal = str(point).translate({ord(c): f"\\{ord(c):03o}" for c in " \t\n\\"})
    table = tmp_path / "mountinfo"
    table.write_text(f"20 1 0:1 / / rw - rootfs none rw\n21 20 0:9999 / {octal} rw - nfs4 server:/home rw\n")
    assert directories.file_system_type(point / "none", table) == "nfs4"


def test_a_directory_of_this_node_is_known_as_one() -> None:
    assert directories.on_this_node_alone(Path("/dev/shm/none"))
