"""`tarazu change drain` on one node: what is set, that only that is undone, and that notes are trusted for nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarazu.daemons.levers import drained
from tarazu.daemons.levers.drained import Change, Changes
from tarazu.errors import StoreError, Unavailable

NAME = "obdfilter.lustre-OST000a.degraded"


class Server:
    """An OSS with some OSTs, and an MDS's `osp` of them."""

    def __init__(self, root: Path) -> None:
        self.root, self.state = root / "root", root / "state"

    def add(self, index: int, value: int = 0) -> Path:
        return self._file(f"obdfilter/lustre-OST{index:04x}/degraded", value)

    def add_osp(self, index: int, value: int = 20_000) -> Path:
        return self._file(f"osp/lustre-OST{index:04x}-osc-MDT0000/max_create_count", value)

    def _file(self, name: str, value: int) -> Path:
        path = self.root / "sys/fs/lustre" / name
        path.parent.mkdir(parents=True)
        path.write_text(f"{value}\n")
        return path

    def apply(self, *osts: int, fs_name: str = "lustre") -> Changes:
        return drained.apply(fs_name, osts, self.root, self.state)

    def undo(self, *osts: int) -> Changes:
        return drained.undo(self.root, self.state, osts=osts)

    @property
    def notes(self) -> Path:
        return self.state / "levers.json"

    def forge(self, change: Callable[[dict[str, Any]], Any]) -> None:
        """The notes as somebody would have them."""
        kept = json.loads(self.notes.read_text())
        change(kept)
        self.notes.write_text(json.dumps(kept))


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


def test_a_node_without_parameters_is_refused(server: Server) -> None:
    with pytest.raises(Unavailable, match=r"expected obdfilter\.\*\.degraded or osp\."):
        server.apply(10)
    assert not server.state.exists()


def test_only_own_changes_are_undone(server: Server) -> None:
    path, osp = server.add(10), server.add_osp(10)
    assert set(server.apply(10).done) == {
        Change(NAME, 0, 1),
        Change("osp.lustre-OST000a-osc-MDT0000.max_create_count", 20_000, 0),
    }
    assert (path.read_text(), osp.read_text()) == ("1\n", "0\n")
    assert server.apply(10) == Changes(()), "it is set already"
    assert server.apply(10, fs_name="scratch") == Changes(()), "another file system"
    assert server.apply() == Changes(()) and server.apply(11) == Changes(())
    assert len(server.undo().done) == 2
    assert (path.read_text(), osp.read_text()) == ("0\n", "20000\n") and not server.notes.exists()
    assert server.undo() == Changes(())


def test_undo_of_an_ost_that_is_named_leaves_the_others_drained(server: Server) -> None:
    three, ten = server.add(3), server.add(10)
    server.apply(3, 10)
    assert server.undo(3).done == (Change(NAME.replace("000a", "0003"), 1, 0),)
    assert (three.read_text(), ten.read_text()) == ("0\n", "1\n")
    assert server.undo().done == (Change(NAME, 1, 0),)


def test_what_others_set_stays(server: Server) -> None:
    path = server.add(10, 1)
    assert server.apply(10) == Changes(()) and server.undo() == Changes(())
    assert path.read_text() == "1\n"


def test_what_others_changed_since_stays_and_can_be_asked_for_anew(server: Server) -> None:
    path = server.add(10)
    server.apply(10)
    path.write_text("2\n")
    assert server.undo() == Changes((), ((NAME, f"{NAME}=2"),))
    assert path.read_text() == "2\n" and not server.notes.exists()
    path.write_text("0\n")
    server.apply(10)
    path.write_text("0\n")
    assert server.apply(10).done == (Change(NAME, 0, 1),), "somebody has set it back, and asks for it again"
    assert server.undo().done == (Change(NAME, 1, 0),) and path.read_text() == "0\n"


def test_a_target_that_has_moved_stays_noted(server: Server) -> None:
    path = server.add(10).parent
    server.apply(10)
    path.rename(path.with_name("elsewhere"))
    assert [name for name, _ in server.undo().failed] == [NAME]
    path.with_name("elsewhere").rename(path)
    assert server.undo().done == (Change(NAME, 1, 0),)


def test_one_parameter_that_cannot_be_written_does_not_stop_the_undo_of_the_rest(server: Server) -> None:
    paths = [server.add(index) for index in (3, 10, 12)]
    server.apply(3, 10, 12)
    stuck = paths[1].parent
    paths[1].unlink()
    os.mkfifo(paths[1])  # nobody reads it: opening it for writing fails
    undone = server.undo()
    assert [paths[0].read_text(), paths[2].read_text()] == ["0\n", "0\n"] and len(undone.done) == 2
    assert [name for name, _ in undone.failed] == [NAME] and server.notes.exists()
    paths[1].unlink()
    (stuck / "degraded").write_text("1\n")
    assert server.undo().done == (Change(NAME, 1, 0),)


def test_a_forged_note_sets_no_file_and_no_value_that_drain_never_set(server: Server, tmp_path: Path) -> None:
    path, other = server.add(10), server.add(11)
    victim = tmp_path / "root/sys/fs/lustre/victim/passwd"
    victim.parent.mkdir()
    victim.write_text("1\n")
    forgeries: tuple[Callable[[dict[str, Any]], Any], ...] = (
        lambda kept: kept["levers"].update({"victim.passwd": kept["levers"].pop(NAME)}),
        lambda kept: kept["levers"].update({"obdfilter.../../victim.passwd": kept["levers"].pop(NAME)}),
        lambda kept: kept["levers"][NAME]["before"]["parameters"][0].__setitem__(0, "victim.passwd"),
        lambda kept: kept["levers"][NAME]["before"]["parameters"][0].__setitem__(1, "77"),
        lambda kept: kept["levers"][NAME]["before"]["parameters"].clear(),
        lambda kept: kept["levers"][NAME].update(steps=["sick"]),
    )
    for forgery in forgeries:
        server.apply(10, 11)
        server.forge(forgery)
        undone = server.undo()
        assert len(undone.failed) == 1 and len(undone.done) == 1, undone
        assert (path.read_text(), other.read_text(), victim.read_text()) == ("1\n", "0\n", "1\n")
        server.notes.unlink()
        path.write_text("0\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only of root's notes all directories above matter")
def test_notes_where_somebody_else_could_put_them_are_neither_read_nor_written(server: Server) -> None:
    path = server.add(10)
    server.apply(10)
    os.chown(server.state, 65534, -1)
    for call in (server.undo, lambda: server.apply(10)):
        path.write_text("0\n")
        with pytest.raises(StoreError, match="state: expected a directory that only uid 0 can change"):
            call()
    os.chown(server.state, 0, -1)
    server.state.parent.chmod(0o777)
    with pytest.raises(StoreError, match="that only uid 0 can change"):
        server.undo()
    server.state.parent.chmod(0o700)
    server.state.chmod(0o775)
    with pytest.raises(StoreError, match="that only uid 0 can change"):
        server.undo()
    assert path.read_text() == "0\n"


def test_notes_that_are_a_link_or_that_others_can_write_are_refused(server: Server, tmp_path: Path) -> None:
    path = server.add(10)
    server.apply(10)
    theirs = tmp_path / "theirs.json"
    server.notes.rename(theirs)
    for make in (server.notes.symlink_to, server.notes.hardlink_to):
        make(theirs)
        with pytest.raises(StoreError, match=r"levers\.json: expected a readable file"):
            server.undo()
        server.notes.unlink()
    theirs.chmod(0o666)
    theirs.rename(server.notes)
    with pytest.raises(StoreError, match="others can write it"):
        server.undo()
    server.notes.rename(theirs)
    # The temporary file of a former version was opened wherever a link of its name led.
    (server.state / "levers.json.new").symlink_to(theirs)
    before = theirs.read_text()
    path.write_text("0\n")
    assert server.apply(10).done and theirs.read_text() == before


def test_notes_of_an_earlier_boot_restore_nothing(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lustre has its own values again; 1 is somebody else's by now."""
    path = server.add(10)
    server.apply(10)
    (tmp_path / "boot_id").write_text("another one\n")
    monkeypatch.setattr("tarazu.durable.BOOT_ID", tmp_path / "boot_id")
    assert server.undo() == Changes(()) and path.read_text() == "1\n"


def test_two_drains_at_once_wait_for_each_other(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    path = server.add(10)
    with drained.Drains(server.state).locked():
        monkeypatch.setattr(drained, "LOCK_S", 0.01)
        with pytest.raises(Unavailable, match="lock: expected it to be free within"):
            server.apply(10)
    assert path.read_text() == "0\n" and server.apply(10).done


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user's directory")
def test_an_ordinary_user_is_told_in_a_line_that_the_notes_are_not_his(server: Server) -> None:
    server.add(10)
    server.apply(10)
    code = f"from tarazu.cli import main; main(['drain', '--undo', '--state', {str(server.state)!r}])"
    server.state.chmod(0o700)
    child = [sys.executable, "-c", f"import os, tarazu.cli.drain; os.setuid(65534); {code}"]
    done = subprocess.run(child, capture_output=True, text=True, check=True)
    assert done.stderr.startswith("tarazu change drain: ") and "Permission denied" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_damaged_note_is_named(server: Server) -> None:
    server.add(10)
    server.state.mkdir(mode=0o700)
    server.notes.write_text("{")
    with pytest.raises(StoreError, match=r"levers\.json: expected what levers were before"):
        server.apply(10)
