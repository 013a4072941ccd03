"""Rules are set and taken back through a real lnetctl process; what is noted is always more than what is set."""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import time
from pathlib import Path

import pytest

from tarazu import config, durable
from tarazu.daemons.routers import keeper as keepers
from tarazu.daemons.routers.keeper import Done, Keeper, resume, set_here, undo
from tarazu.daemons.routers.kept import Kept
from tarazu.daemons.routers.lnetctl import Lnetctl, LnetctlError, LnetctlSilent
from tarazu.errors import StoreError, Unavailable
from tarazu.forwarding.routers import udsp
from tarazu.sim.testbed.daemons import stand_ins

from .conftest import FOREIGN, GATEWAYS, A, B, C, Server


@pytest.fixture
def keeper(server: Server, tmp_path: Path) -> Keeper:
    return Keeper(Kept(tmp_path / "state"), Lnetctl(server.command), per_minute=60)


def noted(directory: Path) -> list[list[str]]:
    found: list[list[str]] = json.loads((directory / "rules.json").read_text())["rules"]
    return found


def test_rules_come_and_go_beside_those_of_others(
    server: Server, keeper: Keeper, caplog: pytest.LogCaptureFixture
) -> None:
    foreign = {"dst": "10.77.64.9@tcp1", "rte": GATEWAYS[1]}
    server.foreign(FOREIGN, foreign)
    with caplog.at_level(logging.INFO, "tarazu.routers"):
        assert keeper.apply([A, B], 7, "").added == (A, B)
        assert keeper.apply([A, B], 7, "") == ((), (), 0, ())
        done = keeper.apply([B, C], 8, "mdsd names it no more")
    assert (done.added, done.deleted) == ((C,), (A,))
    assert [r[1:] for r in server.shown()[:2]] == [
        ("tcp", "", "", 0),
        ("", foreign["dst"], foreign["rte"], None),
    ]
    assert server.rules()[1:] == [B, C]
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 4 and " rule=added dst=10.77.64.1@tcp1 rte=10.77.0.11@tcp generation=7" in lines[0]
    assert lines[2].endswith(
        'rule=deleted dst=10.77.64.1@tcp1 rte=10.77.0.11@tcp generation=8 why="mdsd names it no more"'
    )
    keeper.take_back("the end")
    assert [r[1:] for r in server.shown()] == [("tcp", "", "", 0), ("", foreign["dst"], foreign["rte"], None)]
    assert noted(keeper.kept.directory) == []


def test_what_is_noted_is_on_disk_before_anything_is_set(server: Server, tmp_path: Path) -> None:
    state = tmp_path / "state"
    # It looks at the notes when it is asked to add.
    spy = tmp_path / "spy.sh"
    spy.write_text(
        f'#!/bin/sh\n[ "$2" = add ] && cp {state}/rules.json {state}/seen\nexec {server.command} "$@"\n'
    )
    spy.chmod(0o755)
    Keeper(Kept(state), Lnetctl(str(spy)), per_minute=60).apply([A, B], 1, "")
    assert json.loads((state / "seen").read_text())["rules"] == [[str(r.dst), str(r.rte)] for r in (A, B)]


def test_a_rule_that_somebody_else_set_is_not_ours_to_delete(server: Server, keeper: Keeper) -> None:
    server.foreign({"dst": str(A.dst), "rte": str(A.rte)})
    assert keeper.apply([A, B], 1, "").added == (B,)
    keeper.take_back("the end")
    assert server.rules() == [A]


@pytest.mark.parametrize("dst", ["tcp1", "10.77.64.[1-5]@tcp1", "10.77.64.1.3-4]@tcp1"])
def test_nodes_for_which_the_site_has_a_rule_of_its_own_get_none(
    server: Server, keeper: Keeper, dst: str
) -> None:
    """To Lustre the later rule would take the place of the site's, and its end would end that one too."""
    keeper.apply([B], 1, "")
    server.foreign({"dst": str(B.dst), "rte": str(B.rte)}, {"dst": dst, "rte": GATEWAYS[1]})
    done = keeper.apply([A], 2, "")
    assert done.added == () and done.deleted == (B,)
    assert "not tarazu's (idx 1" in done.refused[0] and f"--dst {dst} " in done.refused[0]


def test_a_rule_that_somebody_else_deleted_is_not_deleted_again(server: Server, keeper: Keeper) -> None:
    keeper.apply([A, B], 1, "")
    server.lnetctl("udsp", "del", "--idx", "1")
    keeper.take_back("the end")
    assert [r[1:] for r in server.shown()] == [("tcp", "", "", 0)] and noted(keeper.kept.directory) == []


def test_what_somebody_deletes_comes_back_at_the_next_look(
    server: Server, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper.apply([A], 1, "")
    server.foreign()
    assert keeper.apply([A], 1, "").added == (), "nothing is to be changed: nothing is looked at"
    monkeypatch.setattr("tarazu.daemons.routers.keeper.LOOK_S", 0.0)
    keeper.apply([A, B], 1, "")
    server.foreign()
    assert keeper.apply([A, B], 1, "").added == (A, B)


def test_only_so_many_are_added_in_a_minute(server: Server, tmp_path: Path) -> None:
    keeper = Keeper(Kept(tmp_path / "state"), Lnetctl(server.command), per_minute=2)
    done = keeper.apply([A, B, C], 1, "")
    assert done.added == (A, B) and done.postponed == 1
    assert keeper.take_back("the end").deleted == (A, B)
    assert keeper.apply([C], 2, "").added == ()


def test_one_refused_rule_keeps_no_other_from_its_place(
    server: Server, keeper: Keeper, tmp_path: Path
) -> None:
    wrapper = tmp_path / "picky.sh"
    calls = tmp_path / "calls"
    wrapper.write_text(
        f'#!/bin/sh\necho "$*" >> {calls}\ncase "$*" in *"add --dst {A.dst}"*) '
        f"printf 'add:\\n    - udsp:\\n          errno: -22\\n          descr: \"no\"\\n' >&2; exit 234;; esac\n"
        f'exec {server.command} "$@"\n'
    )
    wrapper.chmod(0o755)
    keeper.lnetctl = Lnetctl(str(wrapper))
    done = keeper.apply([A, B], 1, "")
    assert done.added == (B,) and len(done.refused) == 1 and done.refused[0].endswith("status 234: no")
    assert keeper.apply([A, B], 1, "").refused == (), "not tried again at once"
    assert calls.read_text().count(f"add --dst {A.dst}") == 1
    assert noted(keeper.kept.directory) == [[str(B.dst), str(B.rte)]]


def test_a_lnetctl_that_hangs_is_ended_and_what_it_may_have_done_stays_noted(
    server: Server, tmp_path: Path
) -> None:
    hangs = tmp_path / "hangs.sh"
    hangs.write_text(f'#!/bin/sh\n[ "$2" = add ] && exec sleep 60\nexec {server.command} "$@"\n')
    hangs.chmod(0o755)
    keeper = Keeper(Kept(tmp_path / "state"), Lnetctl(str(hangs), timeout_s=0.5), per_minute=60)
    with pytest.raises(LnetctlSilent, match=r"expected an answer within 0\.5 s"):
        keeper.apply([A, B], 1, "")
    assert noted(tmp_path / "state") == [[str(A.dst), str(A.rte)]]


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("/nowhere/lnetctl", "/nowhere/lnetctl: .*No such file"),
        ("", "lnetctl"),
        ("sh -c 'echo udsp: nonsense'", "line 1"),
        ("sh -c 'echo no LNet here >&2; exit 5'", "status 5: no LNet here"),
    ],
)
def test_failures_say_what_lnetctl_said(tmp_path: Path, command: str, says: str) -> None:
    with pytest.raises(LnetctlError, match=says):
        Keeper(Kept(tmp_path / "state"), Lnetctl(command), per_minute=60).apply([A], 1, "")


def settings_of(server: Server, state: Path) -> config.Settings:
    """Of this process, which is on that server from now on."""
    server.here()
    return config.Settings(state=config.State(str(state)))


def test_undo_takes_back_and_holds_until_it_is_resumed(server: Server, tmp_path: Path) -> None:
    settings = settings_of(server, tmp_path)
    daemon = keepers.keeper_of(settings)
    daemon.apply([A, B], 3, "")
    assert set_here(settings) == ((A, B), 3, False)
    assert undo(settings).deleted == (A, B) and server.rules() == []
    assert daemon.apply([A, B], 3, "").added == () and set_here(settings).held
    assert undo(settings).deleted == ()
    assert resume(settings) and not resume(settings)
    assert daemon.apply([A], 4, "").added == (A,)


def test_undo_says_what_it_could_not_take_back(server: Server, tmp_path: Path) -> None:
    settings = settings_of(server, tmp_path)
    keepers.keeper_of(settings).apply([A], 3, "")
    os.environ.update(stand_ins(server.root, lnetctl="false"))
    undone = undo(settings)
    assert undone.left == (A,) and "status 1" in undone.why and server.rules() == [A]
    server.here()
    assert undo(settings).deleted == (A,)


def test_notes_of_an_earlier_boot_are_nobodys_rules(
    server: Server, keeper: Keeper, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keeper.apply([A], 1, "")
    boot = tmp_path / "boot_id"
    boot.write_text("another\n")
    monkeypatch.setattr("tarazu.durable.BOOT_ID", boot)
    # As if the node's own scripts had set it at boot.
    assert keeper.take_back("left by a former run").deleted == () and server.rules() == [A]


@pytest.mark.parametrize(
    "garbage", [b"", b"{", b"[1]", b'{"format": 9, "boot": "", "generation": 0, "rules": []}']
)
def test_notes_that_cannot_be_read_are_an_error_not_an_empty_list(keeper: Keeper, garbage: bytes) -> None:
    keeper.kept.directory.mkdir()
    (keeper.kept.directory / "rules.json").write_bytes(garbage)
    with pytest.raises(StoreError, match=r"rules\.json"):
        keeper.apply([A], 1, "")


def test_who_comes_after_a_killed_one_waits_for_its_lnetctl(server: Server, tmp_path: Path) -> None:
    """Else a rule would be set after everything was taken back."""
    state, slow, begun = tmp_path / "state", tmp_path / "slow.sh", tmp_path / "begun"
    slow.write_text(f'#!/bin/sh\n[ "$2" = add ] && touch {begun} && sleep 0.5\nexec {server.command} "$@"\n')
    slow.chmod(0o755)
    pid = os.fork()
    if pid == 0:
        try:
            Keeper(Kept(state), Lnetctl(str(slow)), per_minute=60).apply([A], 1, "")
        finally:
            os._exit(0)
    while not begun.exists():
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    after = Keeper(Kept(state), Lnetctl(server.command), per_minute=60)
    with pytest.raises(Unavailable, match="lock"):
        after.take_back("left by a former run")
    assert after.take_back("left by a former run", wait_s=10.0).deleted == (A,)
    assert server.rules() == []


KILLED_AT = [
    pytest.param(point, marks=() if point in ("after 2", "after 4") else pytest.mark.long)
    for point in (f"{when} {number}" for number in range(1, 6) for when in ("before", "after"))
]
"""The calls of lnetctl: show, del, show, add, add."""


@pytest.mark.soak
@pytest.mark.parametrize("point", KILLED_AT)
def test_wherever_it_is_killed_all_of_ours_is_taken_back_and_nothing_else(
    server: Server, tmp_path: Path, point: str
) -> None:
    state, count, when, number = tmp_path / "state", tmp_path / "count", *point.split()
    foreign = {"dst": "10.77.64.9@tcp1", "rte": GATEWAYS[1]}
    server.foreign(foreign, FOREIGN)
    after = Keeper(Kept(state), Lnetctl(server.command), per_minute=60)
    after.apply([C], 1, "")
    before, run = (f"[ $n = {number} ] && kill -9 $PPID || true", f'{server.command} "$@"')
    steps = [before, run] if when == "before" else [run, before]
    killer = tmp_path / "killer.sh"
    killer.write_text(f"#!/bin/sh\necho x >> {count}; n=$(wc -l < {count})\n" + "\n".join(steps) + "\n")
    killer.chmod(0o755)
    pid = os.fork()
    if pid == 0:
        try:
            Keeper(Kept(state), Lnetctl(str(killer)), per_minute=60).apply([A, B], 2, "")
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert {*server.rules()} <= {A, B, C, server.shown()[0].rule}
    after.take_back("left by a former run", wait_s=10.0)
    assert [each[1:] for each in server.shown()] == [
        ("", foreign["dst"], foreign["rte"], None),
        ("tcp", "", "", 0),
    ]


def test_long_patterns_are_refused_before_lnetctl_cuts_them() -> None:
    with pytest.raises(Exception, match="at most 100 characters"):
        udsp.rule(f"10.77.0.[{','.join(f'{n}-{n + 1}' for n in range(0, 90, 3))}]@tcp", GATEWAYS[0])


def test_on_a_full_disk_nothing_is_set_and_all_is_taken_back(
    server: Server, keeper: Keeper, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    keeper.apply([A, B], 7, "")
    monkeypatch.setattr(durable, "replace", full)
    with pytest.raises(StoreError, match="No space left"):
        keeper.apply([A, C], 8, "")
    assert server.rules() == [A, B]
    with caplog.at_level(logging.INFO, "tarazu.routers"):
        assert keeper.take_back("the end").deleted == (A, B)
        assert keeper.take_back("the end") == Done()
    assert server.rules() == [] and "rule=gone" not in caplog.text
    monkeypatch.undo()
    keeper.take_back("the end")
    assert noted(keeper.kept.directory) == []


def test_undo_on_a_full_disk_takes_back_and_says_that_it_holds_nobody(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(server, tmp_path)
    keepers.keeper_of(settings).apply([A], 1, "")
    monkeypatch.setattr(durable, "replace", full)
    done = undo(settings)
    assert (done.deleted, done.left, server.rules()) == ((A,), (), []) and "No space left" in done.not_held


def test_undo_with_notes_that_cannot_be_read_holds_the_daemon_back(server: Server, tmp_path: Path) -> None:
    """Else it would begin again as soon as somebody has put the file away."""
    settings = settings_of(server, tmp_path)
    keepers.keeper_of(settings).apply([A], 1, "")
    (tmp_path / "tarazu-routers" / "rules.json").write_text('{"form')
    with pytest.raises(StoreError, match="rules that tarazu has set"):
        undo(settings)
    (tmp_path / "tarazu-routers" / "rules.json").unlink()
    assert keepers.keeper_of(settings).apply([B], 1, "").added == () and set_here(settings).held


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
