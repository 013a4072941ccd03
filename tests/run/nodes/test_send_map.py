"""The first map of a step comes to nodes that do not share the map directory."""

from __future__ import annotations

import os

import pytest

from tarazu.errors import TarazuError
from tarazu.run.nodes import send_map
from tarazu.store.control import read_control
from tests.run.nodes.conftest import Node, write_maps


@pytest.mark.parametrize("feeds_all", [True, False])
def test_the_first_map_comes_to_a_node_that_has_no_map_directory(node: Node, feeds_all: bool) -> None:
    write_maps(node.map, 500)
    frames = send_map.send(node.each(feeds_all), node.spool, node.map, node.map, 1, os.environ, 20.0)
    assert [(a.kind, a.answer) for a in frames.answers] == [("got", "yes")]
    assert (node.received / "map.1").read_bytes() == (node.map / "map.1").read_bytes()
    assert read_control(node.received) == (1, None, None), "a later map is not there"
    assert sorted(p.name for p in node.received.iterdir()) == ["control", "map.1"]
    for directory in (node.received, node.received.parent, node.received.parent.parent):
        assert directory.stat().st_mode & 0o777 == 0o700
    again = send_map.send(node.each(feeds_all), node.spool, node.map, node.map, 1, os.environ, 20.0)
    assert [a.kind for a in again.answers] == ["refused"], "two processes on one node"


@pytest.mark.parametrize("kind", ["writable", "symlink", "somebody's"])
def test_a_planted_directory_is_refused(node: Node, kind: str) -> None:
    write_maps(node.map, 1)
    parent = node.copy / "tarazu-0"
    if kind == "symlink":
        (node.copy / "other").mkdir()
        parent.mkdir()
        (parent / "step").symlink_to("../other")
    else:
        parent.mkdir()
        (parent / "step").mkdir()
        if kind == "writable":
            parent.chmod(0o777)
        else:
            os.chown(parent / "step", 12345, 12345)
    frames = send_map.send(node.each(True), node.spool, node.map, node.map, 1, os.environ, 20.0)
    assert [(a.kind, a.answer) for a in frames.answers] == [("refused", "no")]


def test_a_map_too_large_for_arguments_is_said_to_be(node: Node) -> None:
    write_maps(node.map, 1)
    (node.map / "map.2").write_bytes(bytes(send_map.MOST_IN_ARGUMENTS + 1))
    with pytest.raises(TarazuError, match="KiB: unshare can send 512 KiB"):
        send_map.send(node.each(False), node.spool, node.map, node.map, 2, os.environ, 20.0)
    assert (
        send_map.send(node.each(True), node.spool, node.map, node.map, 2, os.environ, 20.0).answers[0].kind
        == "got"
    )
