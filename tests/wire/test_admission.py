"""Which keys are admitted, and for whom: what the files of the key directory say, now and after a change."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.errors import WireError
from tarazu.wire import admission, keys
from tarazu.wire.admission import Admission, Admitted


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for role in keys.ROLES:
        keys.create(tmp_path, role)
    return tmp_path


def further(directory: Path, role: str, name: str) -> bytes:
    """A further public key of a role; the key."""
    other = directory / ".other"
    _, public = keys.create(other, role)
    public.rename(directory / f"{role}-{name}.pub")
    shutil.rmtree(other)
    return keys.load(directory / f"{role}-{name}.pub").public


def look(admitted: Admitted) -> Admitted:
    """As after the time between two looks."""
    admitted._due = 0.0
    admitted.look()
    return admitted


def test_a_key_is_admitted_for_its_role_only(directory: Path) -> None:
    key = further(directory, "oss", "rack2")
    admitted = Admitted(directory)
    found = admitted.find("oss", key)
    assert found and (found.name, found.uids, found.targets) == ("oss-rack2", None, None)
    assert admitted.find("client", key) is None and admitted.find("server", key) is None


def test_keys_that_come_and_go_are_noticed(directory: Path) -> None:
    admitted = Admitted(directory)
    key = further(directory, "client", "new")
    assert look(admitted).find("client", key)
    changes = admitted.changes
    assert look(admitted).changes == changes
    (directory / "client-new.pub").unlink()
    assert look(admitted).find("client", key) is None and admitted.changes == changes + 1


def test_a_file_that_becomes_another_keys_lets_only_that_one_in(directory: Path) -> None:
    first = further(directory, "client", "login1")
    admitted = Admitted(directory)
    (directory / "client-login1.pub").unlink()
    second = further(directory, "client", "login1")
    look(admitted)
    assert admitted.find("client", first) is None and admitted.find("client", second)


def test_old_files_are_not_read_again(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in directory.glob("*.pub"):
        os.utime(path, (1e9, 1e9))
    admitted = Admitted(directory)
    monkeypatch.setattr(admission, "admission", lambda *_: pytest.fail("read again"))
    assert look(admitted).find("oss", keys.load(directory / "oss.pub").public)


def test_lists_say_for_whom_a_key_may_speak(directory: Path) -> None:
    key = keys.load(directory / "client.pub").public
    (directory / "client.uids").write_text("# physics\n1000-1999, 2500\n\n7 # the robot\n")
    (directory / "client.targets").write_text("scratch-OST00*\n")
    found = Admitted(directory).find("client", key)
    assert found and found.uids == ((1000, 1999), (2500, 2500), (7, 7))
    asked = (999, 1000, 1999, 2000, 2500, 7, 0)
    assert [found.may_ask_for(uid) for uid in asked] == [False, True, True, False, True, True, False]
    assert found.may_report("scratch-OST0003") and not found.may_report("scratch-OST0103")


def test_without_a_list_a_key_speaks_for_all_unless_lists_are_required() -> None:
    free = Admission("client", "client", b"")
    assert free.may_ask_for(0) and free.may_report("x") and not free.may_ask_for(0, required=True)
    assert Admission("client", "client", b"", uids=((0, admission.MAX_UID),)).may_ask_for(5, required=True)
    assert not Admission("client", "client", b"", uids=()).may_ask_for(5)


@pytest.mark.parametrize("text", ["1000-", "5-4", "-1", "root", "4294967296", "1000-1999-2", "٣"])
def test_a_list_that_says_something_else_admits_nobody(
    directory: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (directory / "client.uids").write_text(f"\n{text}\n")
    with caplog.at_level(logging.WARNING):
        admitted = Admitted(directory)
    assert admitted.find("client", keys.load(directory / "client.pub").public) is None
    assert admitted.find("oss", keys.load(directory / "oss.pub").public)
    (line,) = (record.getMessage() for record in caplog.records)
    assert "client.uids:2: expected uids such as 1000-1999, 2500 or *, found " in line
    with pytest.raises(WireError, match=r"client\.uids:2"):
        admission.check(directory)


@hypothesis.settings(
    deadline=None,
    suppress_health_check=[
        hypothesis.HealthCheck.function_scoped_fixture,
        hypothesis.HealthCheck.too_slow,
    ],
)
@given(st.text(max_size=60))
def test_any_list_is_ranges_or_a_wire_error(directory: Path, text: str) -> None:
    path = directory
    (path / "client.uids").write_text(text, errors="surrogatepass" if text.isascii() else "replace")
    try:
        found = admission.admission(path, "client", "client")
    except WireError:
        return
    assert found.uids is not None and all(0 <= first <= last < 2**32 for first, last in found.uids)


@pytest.mark.parametrize("file", ["client.pub", "client.uids"])
def test_what_everybody_can_write_admits_nobody(directory: Path, file: str) -> None:
    (directory / "client.uids").write_text("*")
    (directory / file).chmod(0o666)
    admitted = Admitted(directory)
    assert admitted.find("client", keys.load(directory / "client.pub").public) is None


def test_one_key_in_two_files_speaks_for_nobody(directory: Path) -> None:
    """The lists of which file are meant? A key that somebody meant to limit must not become free."""
    shutil.copy(directory / "client.pub", directory / "client-login1.pub")
    (directory / "client-login1.uids").write_text("1000")
    found = Admitted(directory).find("client", keys.load(directory / "client.pub").public)
    assert found and not found.may_ask_for(1000) and not found.may_ask_for(0)


def test_while_the_directory_cannot_be_read_what_was_known_holds(directory: Path) -> None:
    key = keys.load(directory / "client.pub").public
    admitted = Admitted(directory)
    moved = directory.rename(directory.with_name("moved"))
    assert look(admitted).find("client", key)
    moved.rename(directory)
    (directory / "client.pub").unlink()
    assert look(admitted).find("client", key) is None


def test_a_secret_or_another_roles_key_in_a_public_file_admits_nobody(directory: Path) -> None:
    shutil.copy(directory / "oss.pub", directory / "client-a.pub")
    shutil.copy(directory / "oss.key", directory / "oss-b.pub")
    admitted = Admitted(directory)
    assert admitted.find("client", keys.load(directory / "oss.pub").public) is None
    with pytest.raises(
        WireError, match=r"client-a\.pub: expected a public key of role client, found 'role oss'"
    ):
        admission.check(directory)


@pytest.mark.parametrize("file", ["client-b.pub", "client-b.uids"])
def test_a_link_to_nothing_admits_nobody_and_keeps_no_removed_key_in(directory: Path, file: str) -> None:
    client, limited = keys.load(directory / "client.pub").public, further(directory, "client", "b")
    (directory / file).unlink(missing_ok=True)
    (directory / file).symlink_to("nowhere")
    admitted = Admitted(directory)
    assert admitted.find("client", client)
    assert not admitted.find("client", limited)
    (directory / "client.pub").unlink()
    assert not look(admitted).find("client", client)
