"""A stand-in for another node, which has a memory of its own, and maps to send to it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu import native
from tarazu.lustre import EOF
from tarazu.model import Component, FileName, Layout
from tarazu.run.nodes import gather
from tarazu.run.nodes.each_node import EachNode
from tarazu.store.control import announce, write_control
from tarazu.store.placement_map import MapRow, write_map

LAYOUT = Layout((Component(0, EOF, 1 << 20, 2),))


def write_maps(directory: Path, rows: int) -> None:
    """Two generations of a map of so many rows."""
    write_control(directory)
    for generation in (1, 2):
        write_map(
            directory / f"map.{generation}", generation=generation, hash_key=bytes(16),
            ost_counts={"lustre": 8}, rows=[row(f"/{generation}/{i}") for i in range(rows)],
        )  # fmt: skip
        announce(directory, generation)


def row(key: str) -> MapRow:
    names = native.template(key, rank=-1)
    precise, loose, volatile = names.precise, names.loose, names.volatile
    return MapRow("lustre", FileName(key, precise, loose, volatile, -1, 0, 0), 7, LAYOUT, ((3, 1),), (True,))


class Node:
    """A "node" with a /dev/shm of its own and nothing of the leader's but `program`."""

    def __init__(self, tmp: Path) -> None:
        self.spool = f"{tmp}/shm/tarazu-0/step"
        self.map = Path(f"{self.spool}/map")
        self.map.mkdir(parents=True)
        (Path(self.spool) / gather.LEADERS).touch()
        self.copy = tmp / "node2"
        self.copy.mkdir()
        # What is mounted over the leader's is what stays when the command has ended.
        script = 'mount --bind "$0" "$1" && shift && exec "$@"'
        self.words = ("unshare", "--mount", "sh", "-c", script, str(self.copy), f"{tmp}/shm")

    def each(self, feeds_all: bool) -> EachNode:
        return EachNode(self.words, ("n2",), feeds_all=feeds_all)

    @property
    def received(self) -> Path:
        return self.copy / "tarazu-0" / "step" / "map"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    if subprocess.run([*made.words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    yield made
