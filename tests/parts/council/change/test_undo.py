"""`tarazu change undo`: the command of the night, with everything in its way."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from tarazu.parts.changes import by_hand
from tests.within_reach import interpreter, path_of_tarazu

from .node import OSC, RPCS, ClientNode

USER = 1234
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def test_all_is_as_before_and_stays_so_until_apply(node: ClientNode) -> None:
    node.follow("apply")
    status, out, _ = node("undo", "--all")
    assert status == 0 and "restored: max_rpcs_in_flight" in out and "until `tarazu change apply`" in out
    assert node.now() == "8"
    node.follow("apply")
    assert node.now() == "8" and node("undo", "--all")[0] == 0
    assert "nothing new is set: held by tarazu change undo --all, anna" in node("list")[1]
    assert node("apply")[0] == 0
    node.follow("apply")
    assert node.now() == "16"


def test_one_change_is_taken_back_and_is_not_made_again(node: ClientNode) -> None:
    node.follow("apply")
    assert node("undo", RPCS.id[:4])[0] == 0
    node.follow("apply")
    assert node.now() == "8" and "max_read_ahead_mb set" in node.list()
    assert node.list()["max_rpcs_in_flight proposed"]["why_not"].startswith("taken back by anna")
    assert node("apply", RPCS.id)[0] == 0 and node.now() == "16"


def test_all_of_a_lever_is_taken_back(node: ClientNode) -> None:
    node.follow("apply")
    assert node("undo", "--lever", RPCS.lever)[0] == 0
    node.follow("apply")
    assert node.now() == "8" and "max_read_ahead_mb set" in node.list()
    node("apply", RPCS.id)
    node.follow("apply")
    assert node.now() == "16"
    status, _, error = node("undo", "--lever", "no-such")
    assert status == 2 and "expected a lever of this node" in error


@pytest.mark.parametrize("words", [[], ["--all", "--lever", "x"], ["ab", "--all"], ["nothing"]])
def test_what_is_meant_has_to_be_said(node: ClientNode, words: list[str]) -> None:
    node.follow("apply")
    status, _, error = node("undo", *words)
    assert status == 2 and error.count("\n") == 1 and node.now() == "16"


def test_what_somebody_else_has_set_stays_and_is_named(node: ClientNode) -> None:
    node.follow("apply")
    node.somebody_sets("99")
    status, out, _ = node("undo", "--all")
    assert status == 0 and f"somebody else has set {OSC} 99" in out and node.now() == "99"
    assert node.now(OSC.replace("OST0000", "OST0001")) == "8"


def test_a_silent_lctl_leaves_it_set_and_says_so(node: ClientNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.follow("apply")
    lctl = node.root / "bin/lctl"
    lctl.rename(node.root / "bin/lctl.away")
    lctl.write_text("#!/bin/sh\nexec sleep 60\n")
    lctl.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr("tarazu.parts.council.agent.Lctl", _impatient)
        status, out, _ = node("undo", "--all")
    assert status == 1 and f"STILL SET: {RPCS.lever} [{RPCS.id}]: lctl set_param" in out
    assert out.splitlines()[-1] == "still set, or not stopped: see above"
    (node.root / "bin/lctl.away").replace(lctl)
    assert node.now() == "16" and node("undo", "--all")[0] == 0 and node.now() == "8"


def _impatient(*, turn: object) -> object:
    from tarazu.parts.changes.lctl import Lctl

    return Lctl(timeout_s=0.3)


def test_while_another_one_changes_something_it_is_held_and_said(
    node: ClientNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_hand, "LOCK_S", 0.1)
    agent = node.follow("apply")
    with agent.store.locked():
        status, out, _ = node("undo", "--all")
    assert status == 1 and "expected to get the lock" in out and agent.store.held


def test_notes_that_cannot_be_read_are_said_and_hold(node: ClientNode) -> None:
    agent = node.follow("apply")
    (agent.store.directory / "changes.json").write_text('{"form')
    status, out, _ = node("undo", "--all")
    assert status == 1 and "cannot tell what is set" in out and agent.store.held


def test_a_configuration_that_is_wrong_keeps_nothing_from_being_undone(
    node: ClientNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """State lies where it usually does."""
    node.follow("apply")
    monkeypatch.setenv("TARAZU_STATE_DIRECTORY", str(node.state))
    node.configuration.write_text("[tun\n")
    status, out, _ = node("undo", "--all")
    assert status == 1 and "usual directories" in out


@pytest.mark.parametrize("words", [["--all"], [RPCS.id], ["--lever", RPCS.lever]])
def test_it_does_not_ask_a_stop_file_that_may_hang(
    node: ClientNode, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    node.follow("apply")
    monkeypatch.setattr("tarazu.store.stop.site_stop", _hangs)
    assert node("undo", *words)[0] == 0 and node.now() == "8"


def _hangs(path: str) -> None:
    if threading.current_thread() is threading.main_thread():  # not a daemon's of an earlier test
        raise AssertionError(f"{path} was looked for")


@as_root
def test_what_is_another_user_s_root_takes_back_as_he(capsys: pytest.CaptureFixture[str]) -> None:
    """As tarazu-burstd's, which is none of root's; it may neither lead root anywhere nor become root's."""
    base = Path(tempfile.mkdtemp(prefix="tarazu-change-", dir="/dev/shm"))
    try:
        node = ClientNode(base, capsys)
        agent = node.follow("apply")
        directory = agent.store.directory
        for path in (base, node.state, directory):
            path.chmod(0o755)
        for path in (directory, *directory.iterdir()):
            os.chown(path, USER, USER)
        assert RPCS.id in node("list")[1]
        node("undo", "--all")
        assert (directory / "held").stat().st_uid == USER and os.geteuid() == os.getegid() == 0
    finally:
        shutil.rmtree(base)


@as_root
def test_a_user_is_told_that_it_is_root_s(node: ClientNode) -> None:
    if not interpreter(USER):
        pytest.skip("there is no Python that other users can start")
    base = Path(tempfile.mkdtemp(prefix="tarazu-change-", dir="/dev/shm"))
    try:
        base.chmod(0o755)
        (base / "var/tarazu-announcer").mkdir(parents=True, mode=0o700)
        (base / "t.toml").write_text(f'[state]\ndirectory = "{base}/var"\n[run]\nstate_dir = "{base}/home"\n')
        env = {"PATH": os.environ["PATH"], "HOME": str(base)}
        if found := path_of_tarazu(USER):
            env["PYTHONPATH"] = found

        def said(*words: str) -> subprocess.CompletedProcess[str]:
            command = [interpreter(USER), "-m", "tarazu", "change", *words, "--config", f"{base}/t.toml"]
            return subprocess.run(
                command, env=env, user=USER, group=USER, extra_groups=[], cwd="/", text=True, check=False,
                capture_output=True,
            )  # fmt: skip

        listed = said("list")
        assert listed.returncode == 0 and "only root and root may read it" not in listed.stdout, listed.stderr
        assert "only root may read it" in listed.stdout and "nothing of yours" in listed.stdout
        for words in (["undo", "--all"], ["undo", "--lever", "nrs"], ["show", "3f9a"]):
            undone = said(*words)
            assert undone.returncode and " sudo" in undone.stderr and undone.stderr.count("\n") == 1
        (base / "var").chmod(0o700)
        assert "nothing of yours" in said("list").stdout and "use sudo" in said("undo", "--all").stderr
    finally:
        shutil.rmtree(base)


@pytest.mark.parametrize("verb", ["tune", "mdt"])
def test_what_an_undo_named_as_the_next_step_was_refused(node: ClientNode, verb: str) -> None:
    out = node(verb, "--undo")[1]
    assert (named := re.search(r"nothing is set again until `tarazu change (.+)`", out)), out
    assert f"held by tarazu change {verb} --undo" in node("list")[1]
    assert node(*named[1].split())[0] == 0
    assert "nothing new is set" not in node("list")[1]
