"""`tarazu change tune` on a council's node and on a node of its group, with their daemons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.cli import main
from tests.parts.council.group import BEFORE, Client, Group


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    made = Group(tmp_path, silent_s=20.0, worse=1.0)
    yield made
    made.close()


def test_an_administrator_orders_looks_and_undoes(
    group: Group, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = Client(tmp_path, "node1")
    group.here(client)
    group.council(mode="observe")
    group.announcer(client)

    def tune(node: str, *words: str) -> str:
        assert main(["change", "tune", *words, "--config", str(tmp_path / f"{node}.toml")]) == 0
        return capsys.readouterr().out

    group.until(lambda: group.status()["nodes"], client)
    assert "observe (part.council.mode)" in tune("council") and client.in_force == BEFORE
    assert "mode is apply (it was observe)" in tune("council", "--apply")
    group.until(lambda: client.in_force != BEFORE, client)

    def is_set() -> list[dict[str, Any]]:
        return [one for one in json.loads(tune("node1", "--json"))["changes"] if one["state"] == "set"]

    group.until(is_set, client)
    (here,) = is_set()
    assert here["lever"] == "max_rpcs_in_flight" and {*here["before"].values()} == {BEFORE}
    group.until(lambda: "95 %: from" in tune("node1", "show"), client)
    shown = tune("node1", "show")
    assert (
        "council " in shown
        and "apply (tarazu change tune --apply)" in shown
        and "max_rpcs_in_flight" in shown
    )
    assert "\nnode1  write " in shown and "max_rpcs_in_flight" in shown

    assert "restored: max_rpcs_in_flight" in tune("node1", "--undo")
    assert client.in_force == BEFORE and "nothing new is set: held" in tune("node1")
    group.until(lambda: group.status()["nodes"]["node1"]["mode"] == "observe", client)
    assert client.in_force == BEFORE
    assert "parameters: goes on" in tune("node1", "--apply")
    group.until(lambda: client.in_force != BEFORE, client)
    assert "it was apply" in tune("council", "--undo")
    group.until(lambda: client.in_force == BEFORE, client)
