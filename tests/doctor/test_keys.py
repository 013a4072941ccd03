"""The doctor's look at keys: missing, foreign, open, of another pair, revoked."""

from __future__ import annotations

import os

import pytest

from tarazu.wire import keys
from tests.doctor.conftest import Tree, as_nobody, verdicts

OUTSIDE = "tcp://mds1:5771"


def test_without_keys_only_loopback_is_well(tree: Tree) -> None:
    assert tree.look("keys", "oss")["keys"].verdict == "ok"
    tree.put("mdsd", requests=OUTSIDE)
    found = tree.look("keys", "oss")["keys"]
    assert found.verdict == "fail" and OUTSIDE in found.found and "keys create" in found.mend
    tree.put("keys", insecure=True)
    assert verdicts(tree.look("keys", "oss")) == {"keys.insecure": "warn", "keys": "ok"}


@pytest.mark.parametrize(
    ("role", "needed"),
    [
        ("oss", ("oss.key", "server.pub")),
        ("launch", ("client.key", "server.pub")),
        ("mdsd", ("server.key", "oss.pub", "client.pub")),
    ],
)
def test_each_role_needs_its_own(tree: Tree, role: str, needed: tuple[str, ...]) -> None:
    tree.with_keys(*needed)
    assert set(verdicts(tree.look("keys", role)).values()) == {"ok"}
    for name in needed:
        (tree.keys / name).rename(tree.keys / "aside")
        assert tree.look("keys", role)[name].verdict == "fail"
        (tree.keys / "aside").rename(tree.keys / name)


def test_a_key_of_ones_own_stands_for_the_common_one(tree: Tree) -> None:
    tree.with_keys("server.key", "oss.pub")
    assert tree.look("keys", "mdsd")["client.pub"].verdict == "fail"
    keys.create(tree.keys, "client", name="login1")
    (tree.keys / "client-login1.key").unlink()
    assert verdicts(tree.look("keys", "mdsd")) == {"server.key": "ok", "admitted keys": "ok"}
    (tree.keys / "client-login1.uids").write_text("1000-x\n")
    found = tree.look("keys", "mdsd")["admitted keys"]
    assert found.verdict == "fail" and "client-login1.uids" in found.found


def test_a_secret_that_others_read_a_foreign_pair_and_a_revoked_key(tree: Tree) -> None:
    tree.with_keys("client.key", "client.pub", "server.pub")
    (tree.keys / "client.key").chmod(0o644)
    assert "mode 0644" in tree.look("keys", "launch")["client.key"].found
    (tree.keys / "client.key").chmod(0o600)
    keys.create(tree.directory / "other", "client")
    (tree.directory / "other/client.pub").rename(tree.keys / "client.pub")
    assert "does not belong" in tree.look("keys", "launch")["client.key"].found
    (tree.keys / "client.pub").chmod(0o666)
    assert tree.look("keys", "launch")["client.pub"].verdict == "fail"
    keys.create(tree.keys, "client", name="login1")
    (tree.keys / "client-login1.pub").unlink()
    assert "revoked" in tree.look("keys", "launch")["client-login1.key"].found
    (tree.keys / "server.pub").write_text("tarazu-key 1\nrole = server\npublic = x\n")
    assert tree.look("keys", "launch")["server.pub"].verdict == "fail"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_key_that_tarazu_cannot_read(tree: Tree) -> None:
    tree.write("etc/passwd", "tarazu:x:12345:12345::/:/bin/false\n")
    tree.with_keys("client.key", "server.pub")
    key = tree.keys / "client.key"
    assert "tarazu cannot read it" in tree.look("keys", "launch")["client.key"].found
    os.chown(key, 0, 12345)
    key.chmod(0o640)
    assert tree.look("keys", "launch")["client.key"].verdict == "ok"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_what_is_closed_is_roots_to_see(tree: Tree) -> None:
    tree.with_keys("client.key", "server.pub")
    with as_nobody(tree.keys):
        found = tree.look("keys", "launch")["client.key"]
    assert (found.verdict, found.mend) == ("skip", "run it as root")
    tree.keys.chmod(0o700)
    os.seteuid(65534)
    try:
        found = tree.look("keys", "launch")["keys"]
    finally:
        os.seteuid(0)
    assert (found.verdict, found.mend) == ("skip", "run it as root")
