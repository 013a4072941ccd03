"""What a node is, by what Lustre shows of it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tarazu import config
from tarazu.daemons.service import Wakeup
from tarazu.parts.council.announcer import service
from tarazu.parts.council.announcer.service import Announcer, kind_of
from tarazu.parts.council.service import CouncilService
from tests.parts.council.group import STATS, Client, Group
from tests.waiting import LONG_S

DATA = Path(__file__).parents[3] / "data" / "lustre"


def test_an_oss_a_client_and_what_is_neither(tmp_path: Path) -> None:
    assert kind_of(DATA / "oss") == "oss"
    assert kind_of(Client(tmp_path, "login1").root) == "client"
    assert kind_of(tmp_path / "nothing") is None


def test_what_is_mounted_after_the_start_was_never_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, client = Group(tmp_path, silent_s=30.0), Client(tmp_path, "oss1")
    group.keep_pace(monkeypatch)
    group.here(client)
    monkeypatch.setattr(service, "KIND_S", 0.0)
    debug = client.root / "sys/kernel/debug"
    llite, ost = debug / "lustre/llite", debug / "lustre/obdfilter/scratch-OST0000"
    llite.rename(tmp_path / "llite")
    council = CouncilService(group.settings(), Wakeup())
    announcer = Announcer(config.load(str(group.configuration("oss1", client.root))), Wakeup(), None, "oss1")

    def until_the_council_hears_of(kind: str) -> None:
        deadline, written = time.monotonic() + LONG_S, 0
        while (node := council.nodes.of.get("oss1")) is None or not (
            node.observed and node.observed.kind == kind and node.observed.observation
        ):
            assert time.monotonic() < deadline, announcer.kind
            written += 1
            if ost.is_dir():
                (ost / "stats").write_text(STATS.format(requests=written, bytes=written << 20))
            if llite.is_dir():
                client.write(1)
            announcer._tick(time.monotonic())
            assert announcer.end
            announcer.end.wait(0.05)
            council._hear()

    try:
        announcer._tick(time.monotonic())
        assert announcer.kind is None and announcer.end is None
        ost.mkdir(parents=True)
        until_the_council_hears_of("oss")
        shutil.rmtree(ost)
        announcer._tick(time.monotonic())
        assert announcer.kind == "oss", "its targets may only be away"
        (tmp_path / "llite").rename(llite)
        until_the_council_hears_of("client")
    finally:
        for each in (announcer, council):
            each.close()
            each.wakeup.close()
