"""`tarazu change tune --undo`, the site's stop file, and notes or settings that are not what they should be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tarazu.daemons.changes.lctl import Lctl
from tarazu.daemons.levers import keeper as keepers
from tarazu.daemons.levers.keeper import Done, resume, set_here, undo
from tarazu.errors import BadInput, StoreError, Unavailable
from tarazu.sim.testbed import lctl as stand_in
from tarazu.sim.testbed import tunables

from .conftest import CLIENT, Node, settings_of

IO = "ost.OSS.ost_io"
WHY = "the council says so"


@pytest.mark.parametrize("garbage", [b"", b"{", b"[1]", b'{"format": 9, "boot": "", "levers": {}}'])
def test_notes_that_cannot_be_read_set_nothing_and_undo_holds_all_the_same(
    client: Node, garbage: bytes
) -> None:
    client.state.mkdir()
    (client.state / "levers.json").write_bytes(garbage)
    before, settings = client.now(), settings_of(client)
    with pytest.raises(StoreError, match=r"levers\.json"):
        client.keeper().apply({"max_read_ahead_mb": "64"}, WHY)
    with pytest.raises(StoreError, match=r"levers\.json"):
        undo(settings)
    (client.state / "levers.json").unlink()
    assert client.keeper().apply({"max_read_ahead_mb": "64"}, WHY) == Done() and client.now() == before
    assert set_here(settings).held == "held by tarazu change tune --undo"


def test_undo_holds_although_somebody_has_the_lock(client: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """An lctl that hangs in the kernel keeps it."""
    monkeypatch.setattr(keepers, "LOCK_S", 0.05)
    with client.keeper().kept.locked(), pytest.raises(Unavailable, match="expected it to be free"):
        undo(settings_of(client))
    assert client.keeper().apply({"max_read_ahead_mb": "64"}, WHY) == Done() and client.keeper().held


def test_undo_holds_until_apply(client: Node) -> None:
    settings, keeper = settings_of(client), client.keeper()
    keeper.apply({"max_read_ahead_mb": "64"}, WHY)
    here = {each.name: each for each in set_here(settings).levers}
    mount = tunables.instance(0)
    assert here["max_read_ahead_mb"][1:4] == ("64", "64", f"llite.lustre-{mount}.max_read_ahead_mb=256")
    assert here["max_rpcs_in_flight"][1:] == ("8", "", "", "")
    assert undo(settings).restored == ("max_read_ahead_mb",) and keeper.held
    assert keeper.apply({"max_read_ahead_mb": "64"}, WHY) == Done()
    assert resume(settings) and not resume(settings)
    assert keeper.apply({"max_read_ahead_mb": "64"}, WHY).set


def test_the_sites_stop_file_restores_and_holds(
    client: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keepers, "STOP_S", 0.0)
    stop_file = tmp_path / "site" / "stop"
    stop_file.parent.mkdir(mode=0o755)
    settings = settings_of(client, stop_file)
    keeper = keepers.keeper_of(settings)
    assert keeper.apply({"max_read_ahead_mb": "64"}, WHY).set
    stop_file.write_text("maintenance\n")
    if not keeper.held:
        pytest.skip("only root's file counts")
    assert keeper.apply({"max_read_ahead_mb": "64"}, WHY).restored == ("max_read_ahead_mb",)
    assert "maintenance" in set_here(settings).held
    stop_file.unlink()
    assert keeper.apply({"max_read_ahead_mb": "64"}, WHY).set


def test_a_lever_that_the_settings_name_no_more_is_restored(client: Node) -> None:
    client.keeper().apply({"max_read_ahead_mb": "64", "max_rpcs_in_flight": "16"}, WHY)
    client.texts = ("max_read_ahead_mb=64 | 256",)
    assert client.keeper().apply({"max_read_ahead_mb": "64"}, WHY).restored == ("max_rpcs_in_flight",)


@pytest.mark.parametrize("wrong", ["nsr", "nrs=fifo | nonsense 3", "max_read_ahead_mb"])
def test_undo_and_a_look_do_not_depend_on_levers_that_are_written_wrongly(client: Node, wrong: str) -> None:
    """The last one is there twice."""
    before = client.now()
    client.keeper().apply({"max_read_ahead_mb": "64"}, WHY)
    client.texts = (*CLIENT, wrong)
    settings = settings_of(client)
    with pytest.raises(BadInput, match=r"tune\.levers"):
        keepers.keeper_of(settings)
    looked = set_here(settings)
    assert looked.levers[0].set_to == "64" and "tune.levers" in looked.held
    assert undo(settings).restored == ("max_read_ahead_mb",) and client.now() == before


def test_a_daemon_that_cannot_begin_restores_what_the_one_before_left(client: Node) -> None:
    before = client.now()
    keepers.restore_left(settings_of(client), "no key")
    assert not client.state.exists(), "where nothing is noted nothing is made"
    client.keeper().apply({"max_read_ahead_mb": "64"}, WHY)
    another = client.keeper().kept.claim()
    keepers.restore_left(settings_of(client), "no key")
    assert client.now() != before
    os.close(another)
    keepers.restore_left(settings_of(client), "no key")
    assert client.now() == before


def test_what_has_just_failed_is_tried_again_at_the_end(
    client: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, keeper = client.now(), client.keeper()
    keeper.apply({"max_read_ahead_mb": "64"}, WHY)
    with monkeypatch.context() as patched:
        patched.setattr(stand_in, "main", lambda _: 5)
        assert keeper.take_back(WHY).failed
    assert keeper.take_back(WHY) == Done() and client.now() != before
    assert keeper.take_back(WHY, anew=True).restored and client.now() == before


@pytest.mark.parametrize("command", ["", "lctl 'without an end"])
def test_a_command_that_is_none_is_a_failure_in_one_line(client: Node, command: str) -> None:
    lctl = Lctl(command)
    with pytest.raises(Unavailable, match="expected a program"):
        lctl.set([("llite.x.max_read_ahead_mb", "64")])
