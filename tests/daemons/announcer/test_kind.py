"""What a node is, by what Lustre shows of it."""

from __future__ import annotations

from pathlib import Path

from tarazu.daemons.announcer.service import kind_of
from tests.daemons.tuning import Client

DATA = Path(__file__).parents[2] / "data" / "lustre"


def test_an_oss_a_client_and_what_is_neither(tmp_path: Path) -> None:
    assert kind_of(DATA / "oss") == "oss"
    assert kind_of(Client(tmp_path, "login1").root) == "client"
    assert kind_of(tmp_path / "nothing") == "router"
