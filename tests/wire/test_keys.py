"""Key files: made whole or not at all, refused with file and line when they are not what they must be."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.errors import ConfigError, WireError
from tarazu.wire import keys
from tarazu.wire.security import check_address, curve_for, is_local


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("role", keys.ROLES)
def test_a_pair_belongs_together_and_has_its_modes(tmp_path: Path, role: str) -> None:
    previous = os.umask(0)
    try:
        secret_file, public_file = keys.create(tmp_path / "new" / "keys", role)
    finally:
        os.umask(previous)
    assert (mode(secret_file), mode(public_file)) == (0o600, 0o644)
    secret, public = keys.load(secret_file), keys.load(public_file)
    assert secret.public == public.public and secret.secret and public.secret is None
    assert secret.role == public.role == role
    assert secret.secret.decode() not in public_file.read_text()
    assert sorted(p.name for p in secret_file.parent.iterdir()) == [f"{role}.key", f"{role}.pub"]


def test_an_existing_key_is_kept_unless_forced(tmp_path: Path) -> None:
    secret_file, public_file = keys.create(tmp_path, "oss")
    before = secret_file.read_bytes()
    with pytest.raises(WireError, match=r"oss\.key: expected no key there yet"):
        keys.create(tmp_path, "oss")
    assert secret_file.read_bytes() == before
    keys.create(tmp_path, "oss", force=True)
    assert secret_file.read_bytes() != before
    assert keys.load(secret_file).public == keys.load(public_file).public


def test_nothing_is_left_behind_when_the_directory_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WireError, match="expected a directory where keys can be written"):
        keys.create(tmp_path / "file", "oss")
    with pytest.raises(WireError, match="expected a role among server, oss, client"):
        keys.create(tmp_path, "mds")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("bits", [0o604, 0o602, 0o601, 0o644])
def test_a_secret_that_others_can_reach_is_refused(tmp_path: Path, bits: int) -> None:
    secret_file, _ = keys.create(tmp_path, "server")
    secret_file.chmod(bits)
    with pytest.raises(WireError, match=rf"server\.key: expected a secret key .* found 'mode 0{bits:o}'"):
        keys.load(secret_file)


def test_a_secret_may_be_shared_with_a_group(tmp_path: Path) -> None:
    secret_file, _ = keys.create(tmp_path, "client")
    secret_file.chmod(0o640)
    assert keys.load(secret_file).role == "client"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", r":? expected `tarazu-key 1` in the first line, found 'an empty file'"),
        ("hello\n", r":1: expected `tarazu-key 1`, found 'hello'"),
        ("# c\ntarazu-key 1\nrole = mds\n", r":3: expected a role among server, oss, client, found 'mds'"),
        ("tarazu-key 1\nrole = oss\nsecret = short\n", r":3: expected a secret key of 40 Z85 .*5 characters"),
        # In the alphabet of Z85, and more than its four bytes hold.
        (
            f"tarazu-key 1\nrole = oss\nsecret = {'#' * 40}\n",
            r":3: expected a secret key of 40 Z85 .*40 characters",
        ),
        (
            f"tarazu-key 1\nrole = oss\npublic = {'#' * 40}\n",
            r":3: expected a public key of 40 Z85 .*40 characters",
        ),
        ("tarazu-key 1\nrole = oss\nkey = x\n", r":3: expected `role =`.* found 'key'"),
        ("tarazu-key 1\nrole = oss\n", r": expected `role =` and either .* found 'role'"),
    ],
)
def test_a_malformed_key_names_file_and_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "oss.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(WireError, match=r"oss\.key" + says) as caught:
        keys.load(path)
    assert "\n" not in str(caught.value) and caught.value.exit_status == 2


def test_a_message_never_repeats_a_secret(tmp_path: Path) -> None:
    secret_file, _ = keys.create(tmp_path, "oss")
    secret = (keys.load(secret_file).secret or b"").decode()
    secret_file.write_text(secret_file.read_text().replace(secret, secret[:-1]))
    with pytest.raises(WireError) as caught:
        keys.load(secret_file)
    assert secret[:10] not in str(caught.value)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_key_or_a_wire_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("k") / "x.pub"
    path.write_bytes(data)
    with pytest.raises(WireError):
        keys.load(path)


def test_a_process_uses_all_keys_of_its_role_or_none(tmp_path: Path) -> None:
    assert curve_for("oss", tmp_path) is None
    keys.create(tmp_path, "server")
    with pytest.raises(WireError, match=r"oss\.key: expected a readable key file"):
        curve_for("oss", tmp_path)
    assert curve_for("oss", tmp_path, insecure=True) is None
    keys.create(tmp_path, "oss")
    curve = curve_for("oss", tmp_path)
    assert curve and curve.server == keys.load(tmp_path / "server.pub").public
    (tmp_path / "server.key").rename(tmp_path / "oss.key")
    with pytest.raises(WireError, match="expected a secret key of role oss, found 'role server'"):
        curve_for("oss", tmp_path)


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("tcp://127.0.0.1:5770", True),
        ("tcp://127.8.0.1:1", True),
        ("tcp://localhost:1", True),
        ("tcp://[::1]:1", True),
        ("ipc:///run/x", True),
        ("tcp://127.0.0.1.example.org:1", False),
        ("tcp://localhost.example.org:1", False),
        ("tcp://0.0.0.0:1", False),
        ("tcp://*:1", False),
        ("tcp://mds1:5770", False),
    ],
)
def test_only_loopback_goes_without_keys(tmp_path: Path, address: str, local: bool) -> None:
    assert is_local(address) is local
    check_address(address, None, insecure=True)
    if local:
        check_address(address, None, insecure=False)
    else:
        with pytest.raises(ConfigError, match="expected CURVE keys"):
            check_address(address, None, insecure=False)
