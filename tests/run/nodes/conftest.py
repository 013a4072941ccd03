"""A stand-in for another node, which has a memory of its own, and maps to send to it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.run.nodes import gather
from tarazu.run.nodes.each_node import EachNode
from tarazu.store.control import announce, write_control
from tarazu.store.placement_map import write_map
from tests.map_rows import map_row


def write_maps(directory: Path, rows: int) -> None:
    """Two generations of a map of so many rows."""
    write_control(directory)
    for generation in (1, 2):
        write_map(
            directory / f"map.{generation}", generation=generation, hash_key=bytes(16),
            ost_counts={"lustre": 8}, rows=[map_row(f"/{generation}/{i}", (3, 1)) for i in range(rows)],
        )  # fmt: skip
        announce(directory, generation)


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
