"""Where steps run: from leaders' conversations with a real clientd to a real mdsd."""

from __future__ import annotations

import os

import pytest

from tarazu.errors import Unavailable
from tarazu.wire import local
from tarazu.wire.messages import StepProfile
from tests.daemons.conftest import PATIENCE_S, Site, patiently


def test_a_leaders_word_reaches_mdsd_and_ends_with_its_step(site: Site) -> None:
    socket = str(site.directory / "clientd.sock")
    database = str(site.directory / "interaction.db")
    site.start("clientd", "--name", "login1", "--socket", socket, "--database", database)

    def say(message: local.StepNodes) -> object:
        with local.connect(socket, PATIENCE_S) as channel:
            return channel.ask(message)

    profile = StepProfile(4, 100.0, 1e12, ((1, 1e9), (2, 5e8)))
    word = local.StepNodes("s1", "lustre", "4711", "10.77.0.[1-4]@tcp1", 60.0, profile)
    # Before mdsd is there: the newest word is kept until it is.
    assert patiently(lambda: os.path.exists(socket))
    assert say(local.StepNodes("s1", "lustre", "4711", "10.77.0.9@tcp1", 60.0)) == local.Done()
    assert say(word) == local.Done()
    site.mdsd()
    status = site.wait_status(lambda status: status["routers"]["steps"])
    assert status["routers"]["mode"] == "observe" and status["routers"]["refused"] == 0
    with pytest.raises(Unavailable, match="NIDs of at most"):
        say(local.StepNodes("s2", "lustre", "1", "1" * 70_000, 60.0))
    say(local.StepNodes("s1", "lustre", "", "", 0.0, ended=True))
    site.wait_status(lambda status: not status["routers"]["steps"])
