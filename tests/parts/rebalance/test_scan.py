"""Listing files with `lfs find`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tarazu.errors import BadInput
from tarazu.parts.rebalance.scan import scan

NAMES = """#!/bin/sh
case "$*" in *-size*) echo "asks servers that may be down" >&2; exit 22;; esac
printf '%s\\0' "$2/just" "$2/less"
"""


def listing(tmp_path: Path, text: str) -> str:
    lfs = tmp_path / "lfs"
    lfs.write_text(text)
    lfs.chmod(0o755)
    return str(lfs)


def test_it_lists_names_only_for_sizes_would_ask_servers_that_may_be_down(tmp_path: Path) -> None:
    for name, size in (("just", 1500), ("less", 1499)):
        (tmp_path / name).write_bytes(b"x" * size)
        os.utime(tmp_path / name, (1.0, 1.0))
    found = scan([str(tmp_path)], least_bytes=1500, idle_s=1.0, now_s=1e9, lfs=listing(tmp_path, NAMES))
    assert found.left == {"layout unreadable": 1, "small": 1}  # no Lustre here: that far it came


def test_an_lfs_that_fails_is_no_empty_directory(tmp_path: Path) -> None:
    lfs = listing(tmp_path, "#!/bin/sh\nexit 22\n")
    with pytest.raises(BadInput, match="`lfs find` can list, found 'status 22'"):
        scan([str(tmp_path)], least_bytes=1, idle_s=1.0, now_s=1e9, lfs=lfs)
