"""`tarazu change drain` on a system with a sick OST, with the real daemons."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu import config
from tarazu.cli import main
from tarazu.daemons import asking
from tarazu.parts.drain import commands
from tarazu.sim.testbed import Testbed
from tarazu.sim.testbed.daemons import lctl_command, stand_ins
from tests.cli.test_sick_ost import SICK, asked, wait_for


@pytest.fixture
def on(sick: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """What `tarazu change drain WORDS` prints on the node with this root."""
    monkeypatch.setenv("TARAZU_STATE_DIRECTORY", str(tmp_path))

    def run(root: Path, *words: str) -> Any:
        monkeypatch.setenv("PATH", stand_ins(root, lctl=lctl_command(root))["PATH"])
        with contextlib.redirect_stdout(io.StringIO()) as out:
            drain = ("change", "drain", *words, "--json", "--root", str(root))
            assert main([*drain, "--config", str(sick.directory / "etc/tarazu.toml")]) == 0
        return json.loads(out.getvalue())

    return run


def test_advise_changes_nothing(sick: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    shown = asked(sick, capsys, "change", "drain", "--advise", "--share", "0.1")
    assert [(c["ost"], c["oss"], c["held_back"]) for c in shown["osts"]] == [(SICK, "oss2", False)]
    assert shown["commands"] == {
        "5": {
            "degraded": "lctl set_param obdfilter.lustre-OST0005.degraded=1",
            "no_create": "lctl set_param obdfilter.lustre-OST0005.no_create=1",
            "max_create_count": "lctl set_param osp.lustre-OST0005-osc-MDT*.max_create_count=0",
        }
    }
    assert main(["change", "drain", "--advise", "--config", str(sick.directory / "etc/tarazu.toml")]) == 0
    assert "on OSS oss2 (2.12 and later" in capsys.readouterr().out
    degraded = sick.oss_root("oss2") / "sys/fs/lustre/obdfilter/lustre-OST0005/degraded"
    assert degraded.read_text() == "0\n"


def test_apply_and_undo_on_the_servers(sick: Testbed, on: Callable[..., Any], tmp_path: Path) -> None:
    oss1, oss2 = sick.oss_root("oss1"), sick.oss_root("oss2")
    assert on(oss1, "--apply")["set"] == [], "not its OST"
    (change,) = on(oss2, "--apply")["set"]
    assert change["target"] == "obdfilter.lustre-OST0005.degraded"
    wait_for(sick, lambda ost: ost.degraded)
    assert on(sick.mds_root, "--apply")["set"] == [], "the share is used up"
    assert on(oss2, "--undo", "--ost", "4")["restored"] == []
    (undone,) = on(oss2, "--undo")["restored"]
    assert undone["change"] == change
    wait_for(sick, lambda ost: not ost.degraded)
    assert not (tmp_path / "tarazu-drain/changes.json").exists()


def test_an_ost_can_be_named_although_it_is_well(sick: Testbed, on: Callable[..., Any]) -> None:
    root = sick.oss_root("oss3")
    shown = on(root, "--advise", "--ost", "7,2")
    assert [(c["ost"], c["why"], c["held_back"]) for c in shown["osts"]] == [
        (7, "named", False), (2, "named", True),
    ]  # fmt: skip
    (change,) = on(root, "--apply", "--ost", "7")["set"]
    assert change["wanted"] == {"obdfilter.lustre-OST0007.degraded": "1"}
    wait_for(sick, lambda ost: ost.degraded, 7)
    assert len(on(root, "--undo", "--ost", "7")["restored"]) == 1
    wait_for(sick, lambda ost: not ost.degraded, 7)


@pytest.fixture
def unseen(sick: Testbed, monkeypatch: pytest.MonkeyPatch) -> Testbed:
    """What is drained from now on mdsd has not heard of."""
    answer = asking.view_of(config.load(sick.directory / "etc/tarazu.toml"), "")
    monkeypatch.setattr(commands, "view_of", lambda *_: answer)
    monkeypatch.setattr(commands, "view_since_now", lambda *_: answer[0])
    return sick


@pytest.fixture(autouse=True)
def as_before(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test leaves drained is so for none of the others."""
    yield
    if "testbed" in request.fixturenames:
        bed: Testbed = request.getfixturevalue("testbed")
        for path in bed.directory.glob("**/obdfilter/*/degraded"):
            path.write_text("0\n")


def test_two_applies_within_an_interval_drained_more_than_the_share(
    unseen: Testbed, on: Callable[..., Any]
) -> None:
    root, mds = unseen.oss_root("oss3"), unseen.mds_root
    assert len(on(root, "--apply", "--ost", "7")["set"]) == 1
    shown = on(root, "--apply", "--ost", "8")
    assert not shown["set"] and [c["held_back"] for c in shown["osts"]] == [True]
    assert not on(mds, "--apply", "--ost", "2")["set"], "this node's notes hold another one"
    assert len(on(root, "--apply", "--ost", "8", "--share", "0.2")["set"]) == 1
    on(root, "--undo")
    assert len(on(root, "--apply", "--ost", "8")["set"]) == 1, "what is not drained any more does not count"
    degraded = root / "sys/fs/lustre/obdfilter/lustre-OST0008/degraded"
    on(root, "--undo")
    degraded.write_text("1\n")
    assert not on(root, "--apply", "--ost", "7")["set"], "somebody else's counts, too"
    degraded.write_text("0\n")


def test_an_apply_on_another_server_just_before_was_not_counted(
    sick: Testbed, on: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert len(on(sick.oss_root("oss3"), "--apply", "--ost", "7")["set"]) == 1
    notes = os.environ["TARAZU_STATE_DIRECTORY"]
    monkeypatch.setenv("TARAZU_STATE_DIRECTORY", str(tmp_path / "of-oss1"))
    assert not on(sick.oss_root("oss1"), "--apply", "--ost", "1")["set"]
    monkeypatch.setenv("TARAZU_STATE_DIRECTORY", notes)
    on(sick.oss_root("oss3"), "--undo")


def test_apply_on_the_mds(sick: Testbed, on: Callable[..., Any]) -> None:
    path = sick.mds_root / "sys/fs/lustre/osp/lustre-OST0005-osc-MDT0000/max_create_count"
    shown = on(sick.mds_root, "--apply")
    assert [list(change["wanted"].values()) for change in shown["set"]] == [["0"]]
    assert path.read_text() == "0\n"
    assert len(on(sick.mds_root, "--undo")["restored"]) == 1
    assert path.read_text() == "20000\n"


def test_apply_away_from_a_server_is_refused(sick: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["change", "drain", "--apply", "--config", str(sick.directory / "etc/tarazu.toml")]
    assert main([*words, "--root", str(sick.client_root())]) == 1
    assert "expected obdfilter.*.degraded" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's stop file counts")
def test_while_the_site_is_stopped_nothing_is_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARAZU_RUN_STOP_FILE", str(tmp_path / "etc" / "stop"))
    assert main(["disable", "--site", "--reason", "moving disks"]) == 0
    monkeypatch.setenv("TARAZU_STATE_DIRECTORY", str(tmp_path / "state"))
    root = ["--root", str(tmp_path)]
    assert main(["change", "drain", "--apply", *root]) == 1
    assert "stop: moving disks: nothing is set (undo: tarazu enable --site)" in capsys.readouterr().err
    assert main(["change", "drain", "--undo", *root]) == 0


def test_without_mdsd_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "TIMEOUT_S", 0.3)
    (tmp_path / "t.toml").write_text(
        "[mdsd]\nrequests = 'tcp://127.0.0.1:1'\n[keys]\ndirectory = '/nonexistent'\n"
        "[clientd]\nsocket = '/nonexistent'\n"
    )
    run = ["change", "drain", "--advise", "--config", str(tmp_path / "t.toml")]
    assert main(run) == 1
    assert "expected an answer" in capsys.readouterr().err
