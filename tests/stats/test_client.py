"""Mount tables as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.errors import BadInput
from tarazu.stats import client
from tarazu.stats.client import Mount


def mounts(tmp_path: Path, *lines: bytes) -> tuple[Mount, ...]:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "mounts").write_bytes(b"".join(line + b"\n" for line in lines))
    return client.mounts(tmp_path, {})


def test_mount_paths_in_utf_8_with_blanks_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    found = mounts(
        tmp_path,
        b"proc /proc proc rw 0 0",
        "10.0.0.1@tcp:/a /data/größe\\040zwei lustre rw 0 0".encode(),
        "10.0.0.1@tcp:/b /data/間\u3000\u0085\u2028x lustre rw 0 0".encode(),
        b"10.0.0.1@tcp:/c /data/\xff\\134\\011 lustre rw 0 0",
        b"10.0.0.1@tcp:/d /data/d lustre_tgt rw 0 0",
    )
    assert {m.fs_name: m.path for m in found} == {
        "a": "/data/größe zwei",
        "b": "/data/間\u3000\u0085\u2028x",
        "c": "/data/\udcff\\\t",
    }


def test_one_file_system_mounted_twice_and_in_part(tmp_path: Path) -> None:
    found = mounts(
        tmp_path,
        b"1@o2ib,2@tcp:3@tcp:/work /w lustre rw 0 0",
        b"1@o2ib,2@tcp:3@tcp:/work /mnt/alias lustre rw 0 0",
        b"1@o2ib:/work/projects/p\\0401/ /projects/one lustre rw 0 0",
        b"1@o2ib:/work/a:/b /odd lustre rw 0 0",
    )
    assert set(found) == {
        Mount("/w", "work"),
        Mount("/mnt/alias", "work"),
        Mount("/projects/one", "work", "/projects/p 1"),
        Mount("/odd", "work", "/a:/b"),
    }


def test_mounts_named_in_the_environment_may_have_an_equals_sign_in_their_path(tmp_path: Path) -> None:
    assert client.mounts(tmp_path, {"TARAZU_MOUNTS": "/a=b=work:/ä/=fast"}) == (
        Mount("/a=b", "work"),
        Mount("/ä", "fast"),
    )
    for wrong in ("/a", "a=work", "/a="):
        with pytest.raises(BadInput):
            client.mounts(tmp_path, {"TARAZU_MOUNTS": wrong})
