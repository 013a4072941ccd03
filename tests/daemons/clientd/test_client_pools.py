"""Pools where mdsd does not run on the MDS: the clients' clientds see them, and tell."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.daemons import questions
from tarazu.daemons.questions import ClientPools
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.wire.messages import StatusRequest, ViewRequest
from tests.daemons.conftest import PATIENCE_S, Site, allocation, ask

POOLED = Layout((Component(0, EOF, 1 << 20, 2, pool="flash"),))


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def client_root(tmp_path: Path) -> Path:
    root = tmp_path / "client"
    put(root / "proc/mounts", "10.0.0.1@tcp:/lustre /mnt/lustre lustre rw 0 0\nnfs:/home /home nfs rw 0 0\n")
    lov = root / "proc/fs/lustre/lov/lustre-clilov-ffff8a1c/pools"
    put(lov / "flash", "lustre-OST0001_UUID\nlustre-OST0003_UUID\n")
    put(lov / "new", "")
    return root


def test_a_client_reads_the_pools_of_what_is_mounted(
    client_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools = ClientPools(str(client_root))
    assert pools() == {"lustre": {"flash": (1, 3), "new": ()}}
    put(client_root / "proc/fs/lustre/lov/lustre-clilov-ffff8a1c/pools/new", "lustre-OST000a_UUID\n")
    assert pools()["lustre"]["new"] == (), "not read again at once"
    monkeypatch.setattr(questions, "KEEP_POOLS_S", 0.0)
    assert pools()["lustre"]["new"] == (10,)
    assert ClientPools(str(client_root / "nowhere"))() == {}


@pytest.fixture
def away(site: Site) -> Iterator[Site]:
    """mdsd on a node that is not the MDS."""
    shutil.rmtree(site.mds_root / "proc/fs")
    site.mdsd()
    site.ossd()
    site.wait_status(lambda status: status["file_systems"])
    yield site


def test_a_pool_is_served_where_mdsd_is_not_on_the_mds(away: Site, client_root: Path) -> None:
    client = away.client()
    early = ask(client, allocation("early", layouts=(POOLED,)))
    assert early.status == "later", "just after the start mdsd does not know yet what is never to be had"
    told = client.request(ViewRequest("told", "lustre", ClientPools(str(client_root))()), PATIENCE_S)
    assert [o.index for o in told.view.osts if "flash" in o.pools] == [1, 3], "told before it is looked at"
    reply = ask(client, allocation("later", layouts=(POOLED,)))
    assert reply.status == "allocated"
    assert {ost for file in reply.osts for ost in file[0]} == {1, 3}
    osts = away.status()["file_systems"]["lustre"]["osts"]
    assert [o["pools"] for o in osts] == [[], ["flash"], [], ["flash"], []]


def test_a_clientd_that_asks_for_the_status_still_tells_its_pools(away: Site) -> None:
    """As those do that are older than the view."""
    reply = away.client().request(StatusRequest("told", {"lustre": {"flash": (2,)}}), PATIENCE_S)
    assert [o["index"] for o in reply.status["file_systems"]["lustre"]["osts"] if o["pools"]] == [2]


def test_what_the_mds_says_of_pools_stands(site: Site) -> None:
    site.mdsd()
    site.ossd()
    site.wait_status(lambda status: status["file_systems"])
    site.client().request(
        ViewRequest("told", "lustre", {"lustre": {"flash": (0,), "mine": (1, 2)}}), PATIENCE_S
    )
    assert all(o["pools"] == ["flash"] for o in site.status()["file_systems"]["lustre"]["osts"])
