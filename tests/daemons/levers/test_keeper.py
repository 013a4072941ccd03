"""Levers are set and restored on real files; what was there is noted before, and whoever else sets one has it."""

from __future__ import annotations

import errno
import logging
import os
import resource
import shutil
import signal
import stat
import time
from pathlib import Path

import pytest

from tarazu import durable
from tarazu.daemons.levers import keeper as keepers
from tarazu.daemons.levers.keeper import Done, Keeper, resume, undo
from tarazu.errors import Unavailable
from tarazu.sim.testbed import lctl as stand_in
from tarazu.sim.testbed import tunables
from tarazu.sim.testbed.daemons import lctl_command

from .conftest import Node, noted, settings_of

IO = "ost.OSS.ost_io"
WHY = "the council says so"


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks each time."""
    monkeypatch.setattr(keepers, "LOOK_S", 0.0)


def test_what_was_there_comes_back_exactly(oss: Node, caplog: pytest.LogCaptureFixture) -> None:
    oss.set(f"{IO}.nrs_policies", "orr")
    oss.set(f"{IO}.nrs_orr_quantum", "reg_quantum:32")
    oss.set(f"{IO}.nrs_orr_offset_type", "hp_offset_type:logical")
    oss.set(f"{IO}.nrs_orr_supported", "reads_and_writes")
    before, keeper = oss.now(), oss.keeper()
    with caplog.at_level(logging.INFO, "tarazu.tune"):
        assert keeper.apply({"nrs": "crrn 32"}, WHY) == Done(set=(("nrs", "crrn 32"),))
        assert keeper.in_force()["nrs"] == "crrn 32" and noted(oss) == {"nrs": ["crrn 32"]}
        assert keeper.apply({"nrs": "trr 64"}, WHY).set == (("nrs", "trr 64"),)
        assert keeper.apply({"nrs": "trr 64"}, WHY) == Done()
        assert keeper.apply({}, "the council ends") == Done(restored=("nrs",))
    assert oss.now() == before and noted(oss) == {}
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    was = f"{IO}.nrs_policies reg=orr 32 reads_and_writes; {IO}.nrs_policies hp=orr 256 logical reads_and_writes"
    assert f' lever=nrs set="crrn 32" before="{was}" why="{WHY}"' in lines[0]
    assert lines[2].endswith(f' lever=nrs restored="{was}" before="{was}" why="the council ends"')


def test_queues_with_policies_of_their_own_are_restored_each(oss: Node) -> None:
    oss.set(f"{IO}.nrs_policies", "crrn hp")
    oss.set(f"{IO}.nrs_crrn_quantum", "hp_quantum:5")
    before, keeper = oss.now(), oss.keeper()
    assert keeper.apply({"nrs": "orr 64"}, WHY).set
    assert keeper.take_back(WHY).restored == ("nrs",) and oss.now() == before


def test_a_clients_levers_come_and_go(client: Node) -> None:
    client.set("osc.*OST0001*.max_rpcs_in_flight", "9")
    before, keeper = client.now(), client.keeper()
    wanted = {"max_rpcs_in_flight": "16", "max_pages_per_rpc": "256", "max_read_ahead_mb": "64"}
    assert {*keeper.apply(wanted, WHY).set} == {*wanted.items()}
    assert keeper.in_force() == wanted
    assert keeper.apply({"max_rpcs_in_flight": "32"}, WHY) == Done(
        (("max_rpcs_in_flight", "32"),), ("max_pages_per_rpc", "max_read_ahead_mb")
    )
    assert keeper.take_back(WHY).restored == ("max_rpcs_in_flight",) and client.now() == before


def test_the_note_is_on_disk_before_anything_is_set(client: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Order of what reaches the disk: the note, its rename, its directory; then lctl."""
    order: list[str] = []
    fsync, call = os.fsync, client.program.call

    def synced(descriptor: int) -> None:
        order.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    monkeypatch.setattr(durable.os, "fsync", synced)  # type: ignore[attr-defined]
    monkeypatch.setattr(
        client.program, "call", lambda words: (order.append(f"lctl {noted(client)}"), call(words))[1]
    )
    client.keeper().apply({"max_rpcs_in_flight": "16"}, WHY)
    assert order[:3] == ["file", "directory", "lctl {'max_rpcs_in_flight': ['', '16']}"]


def test_only_listed_values_are_ever_set(oss: Node) -> None:
    keeper = oss.keeper()
    done = keeper.apply({"nrs": "crrn 4", "max_rpcs_in_flight": "16", "window": "1ms"}, WHY)
    assert done.set == () and [name for name, _ in done.failed] == ["max_rpcs_in_flight", "nrs", "window"]
    assert "expected one of: fifo, crrn 8" in dict(done.failed)["nrs"] and oss.program.calls == []


def test_a_lever_that_fails_midway_is_put_back_at_once(
    client: Node, caplog: pytest.LogCaptureFixture
) -> None:
    """One of two devices refuses: a server that takes smaller RPCs."""
    client.texts = ("max_pages_per_rpc=256 | 512",)
    before, keeper = client.now(), client.keeper()
    script = client.root / "lctl.sh"
    script.write_text(
        '#!/bin/sh\ncase "$*" in *OST0001*=512*) '
        'set -- "$1" "$2" osc.*OST0001-osc-f*.max_pages_per_rpc=99999 ;; esac\n'
        f'exec {lctl_command(client.root)} "$@"\n'
    )
    script.chmod(0o755)
    keeper = client.keeper(str(script))
    with caplog.at_level(logging.INFO, "tarazu.tune"):
        done = keeper.apply({"max_pages_per_rpc": "512"}, WHY)
    assert done.set == () and done.restored == ("max_pages_per_rpc",)
    assert "Numerical result out of range" in dict(done.failed)["max_pages_per_rpc"]
    assert client.now() == before and noted(client) == {}
    assert ' failed="512"' in caplog.text and ' restored="' in caplog.text
    # It is not asked again at once, another value is.
    assert keeper.apply({"max_pages_per_rpc": "512"}, WHY) == Done()
    assert keeper.apply({"max_pages_per_rpc": "256"}, WHY).set


def test_an_error_counts_although_the_last_one_of_the_call_was_taken(
    client: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """lctl's status is the last parameter's."""
    taken = stand_in.tunable

    def refuses(path: str, value: str) -> str:
        if "OST0000" in path and value == "16":
            raise stand_in.No(errno.ERANGE)
        return taken(path, value)

    monkeypatch.setattr(stand_in, "tunable", refuses)
    before = client.now()
    done = client.keeper().apply({"max_rpcs_in_flight": "16"}, WHY)
    assert "Numerical result out of range" in dict(done.failed)["max_rpcs_in_flight"]
    assert done.restored == ("max_rpcs_in_flight",) and client.now() == before


def test_another_value_than_was_set_is_a_failure(client: Node) -> None:
    """Lustre 2.17 takes half of the memory where it is told more."""
    client.texts = ("max_read_ahead_mb=64 | 40000",)
    before = client.now()
    done = client.keeper().apply({"max_read_ahead_mb": "40000"}, WHY)
    assert (
        "expected 40000 to be in force after it was set, found 32768"
        in dict(done.failed)["max_read_ahead_mb"]
    )
    assert client.now() == before


def test_the_watchdog_is_told_before_each_call(client: Node) -> None:
    told: list[None] = []
    keeper = keepers.keeper_of(settings_of(client), lambda: told.append(None))
    keeper.apply({"max_read_ahead_mb": "64", "max_rpcs_in_flight": "16"}, WHY)
    assert len(told) == 2


def test_a_policy_that_is_still_stopping_leaves_what_was_there(oss: Node) -> None:
    before = oss.now()
    (oss.root / "nrs").mkdir(exist_ok=True)
    (oss.root / "nrs" / "draining").write_text("trr")
    done = oss.keeper().apply({"nrs": "trr 64"}, WHY)
    assert "Resource temporarily unavailable" in dict(done.failed)["nrs"] and oss.now() == before


@pytest.mark.usefixtures("no_pause")
def test_whoever_sets_a_lever_beside_us_has_it(oss: Node, caplog: pytest.LogCaptureFixture) -> None:
    keeper = oss.keeper()
    keeper.apply({"nrs": "crrn 8"}, WHY)
    oss.set(f"{IO}.nrs_policies", "delay")
    his = oss.now()
    with caplog.at_level(logging.INFO, "tarazu.tune"):
        done = keeper.apply({"nrs": "trr 64"}, WHY)
    assert done == Done(left=(("nrs", f"{IO}.nrs_policies reg=delay and 1 more"),))
    assert ' lever=nrs left="' in caplog.text and "his until tarazu change tune --apply" in caplog.text
    for value in ("crrn 8", "orr 64", ""):
        assert keeper.apply({"nrs": value} if value else {}, WHY) == Done()
    settings = settings_of(oss)
    assert undo(settings).left[0][0] == "nrs" and oss.now() == his
    assert resume(settings)
    oss.set(f"{IO}.nrs_policies", "fifo")
    assert oss.keeper().apply({"nrs": "trr 64"}, WHY).set


@pytest.mark.usefixtures("no_pause")
def test_of_many_devices_only_the_changed_one_is_left_alone(client: Node) -> None:
    keeper = client.keeper()
    keeper.apply({"max_rpcs_in_flight": "16"}, WHY)
    client.set("osc.*OST0001*.max_rpcs_in_flight", "64")
    done = keeper.apply({"max_rpcs_in_flight": "32"}, WHY)
    mount = tunables.instance(0)
    assert done.left == (("max_rpcs_in_flight", f"osc.lustre-OST0001-osc-{mount}.max_rpcs_in_flight=64"),)
    assert keeper.levers["max_rpcs_in_flight"].current() == "8, 64"
    keeper.take_back(WHY)
    assert keeper.levers["max_rpcs_in_flight"].current() == "8, 64"


def test_undo_never_overwrites_what_is_not_ours(client: Node) -> None:
    client.keeper().apply({"max_rpcs_in_flight": "16", "max_read_ahead_mb": "64"}, WHY)
    client.set("osc.*OST0000*.max_rpcs_in_flight", "10")
    undone = undo(settings_of(client))
    assert undone.restored == ("max_read_ahead_mb",) and [name for name, _ in undone.left] == [
        "max_rpcs_in_flight"
    ]
    found = client.keeper().in_force()
    assert found == {"max_rpcs_in_flight": "10, 8", "max_pages_per_rpc": "1024", "max_read_ahead_mb": "256"}


@pytest.mark.usefixtures("no_pause")
def test_a_file_system_that_is_mounted_later_is_set_too_and_restored(client: Node) -> None:
    keeper = client.keeper()
    keeper.apply({"max_read_ahead_mb": "64"}, WHY)
    tunables.make_client(client.root, "scratch", 3, 1)
    client.set("llite.scratch-*.max_read_ahead_mb", "128")
    assert keeper.in_force()["max_read_ahead_mb"] == "64, 128"
    assert keeper.apply({"max_read_ahead_mb": "64"}, WHY).set
    assert keeper.in_force()["max_read_ahead_mb"] == "64"
    keeper.take_back(WHY)
    assert keeper.levers["max_read_ahead_mb"].current() == "256, 128"


@pytest.mark.usefixtures("no_pause")
def test_what_is_unmounted_is_nobodys_and_what_comes_under_its_name_is_new(client: Node) -> None:
    keeper = client.keeper()
    keeper.apply({"max_read_ahead_mb": "64"}, WHY)
    llite = client.root / "sys/fs/lustre/llite"
    llite.rename(client.root / "gone")
    assert keeper.apply({"max_read_ahead_mb": "64"}, WHY) == Done()
    shutil.copytree(client.root / "gone", llite)
    client.set("llite.*.max_read_ahead_mb", "300")  # as it is mounted again, with an option of its own
    assert keeper.apply({"max_read_ahead_mb": "64"}, WHY).set
    assert keeper.take_back(WHY).restored == ("max_read_ahead_mb",)
    assert keeper.levers["max_read_ahead_mb"].current() == "300"
    keeper.apply({"max_read_ahead_mb": "64"}, WHY)
    shutil.rmtree(llite)
    assert keeper.take_back(WHY).restored == ("max_read_ahead_mb",) and noted(client) == {}


@pytest.mark.usefixtures("no_pause")
def test_an_oss_whose_service_started_anew_is_set_anew(oss: Node) -> None:
    """All its OSTs went to the other server and came back: nobody set FIFO."""
    keeper = oss.keeper()
    keeper.apply({"nrs": "crrn 8"}, WHY)
    tunables.make_oss(oss.root)
    assert keeper.apply({"nrs": "crrn 8"}, WHY).set == (("nrs", "crrn 8"),)
    keeper.take_back(WHY)
    assert keeper.levers["nrs"].current() == "fifo"


def test_what_limits_on_purpose_is_left_alone(oss: Node) -> None:
    for policy in ("delay", "tbf nid", "crrn reg"):
        oss.set(f"{IO}.nrs_policies", policy)
        before = oss.now()
        done = oss.keeper().apply({"nrs": "crrn 8"}, WHY)
        assert done.set == () and "left alone" in dict(done.failed)["nrs"]
        assert oss.now() == before and noted(oss) == {}


def test_a_rule_of_tbf_beside_those_of_an_administrator(oss: Node) -> None:
    keeper, rule = oss.keeper(), "jobid={ior.*} rate=1000"
    assert (
        "found no rules under fifo" in dict(keeper.apply({"nrs_tbf_rule": rule}, WHY).failed)["nrs_tbf_rule"]
    )
    oss.set(f"{IO}.nrs_policies", "tbf jobid")
    oss.set(f"{IO}.nrs_tbf_rule", "start his jobid={cp.*} rate=7")
    before, keeper = oss.now(), oss.keeper()
    assert keeper.apply({"nrs_tbf_rule": rule}, WHY).set and keeper.in_force()["nrs_tbf_rule"] == rule
    assert "tarazu jobid={ior.*} 1000, ref 0\nhis jobid={cp.*} 7" in oss.now()[f"{IO_PATH}/nrs_tbf_rule"]
    assert keeper.apply({"nrs_tbf_rule": "none"}, WHY).set and oss.now() == before
    keeper.apply({"nrs_tbf_rule": rule}, WHY)
    assert keeper.take_back(WHY).restored == ("nrs_tbf_rule",) and oss.now() == before


IO_PATH = "sys/kernel/debug/lustre/ost/OSS/ost_io"


def test_a_rule_of_our_name_that_is_not_noted_is_not_ours(oss: Node) -> None:
    oss.set(f"{IO}.nrs_policies", "tbf jobid")
    oss.set(f"{IO}.nrs_tbf_rule", "start tarazu jobid={ior.*} rate=1000")
    before = oss.now()
    assert oss.keeper().apply({"nrs_tbf_rule": "none"}, WHY).failed and oss.now() == before


def test_a_value_that_would_raise_max_dirty_mb_is_not_set(client: Node) -> None:
    """Lustre raises it by itself, and nothing lowers it again."""
    client.set("osc.*OST0001*.max_dirty_mb", "60")
    before = client.now()
    done = client.keeper().apply({"max_rpcs_in_flight": "16"}, WHY)
    assert "max_dirty_mb (60)" in dict(done.failed)["max_rpcs_in_flight"] and client.now() == before


def test_levers_that_hang_on_one_another_are_restored_in_an_order_that_fits(client: Node) -> None:
    client.set("osc.*.max_dirty_mb", "40")
    before, keeper = client.now(), client.keeper()
    keeper.apply({"max_pages_per_rpc": "256"}, WHY)
    keeper.apply({"max_pages_per_rpc": "256", "max_rpcs_in_flight": "32"}, WHY)
    assert keeper.in_force() == {
        "max_rpcs_in_flight": "32",
        "max_pages_per_rpc": "256",
        "max_read_ahead_mb": "256",
    }
    # With 32 in flight 1024 pages do not fit: that comes second.
    assert undo(settings_of(client)) == (("max_rpcs_in_flight", "max_pages_per_rpc"), (), (), "")
    assert client.now() == before


def test_sizes_of_reads_and_writes_that_differ_are_left_alone(client: Node) -> None:
    osc = client.root / f"sys/fs/lustre/osc/lustre-OST0000-osc-{tunables.instance(0)}"
    (osc / "max_mb_per_rpc_read").write_text("4\n")
    (osc / "max_mb_per_rpc_write").write_text("1\n")
    done = client.keeper().apply({"max_pages_per_rpc": "256"}, WHY)
    assert "left alone" in dict(done.failed)["max_pages_per_rpc"] and noted(client) == {}


KILLED_AT = [
    pytest.param(
        point, marks=() if point in ("before 1", "instead 1", "after 1", "after 2") else pytest.mark.long
    )
    for point in (f"{when} {number}" for number in range(1, 5) for when in ("before", "instead", "after"))
]
"""The calls of lctl: crrn, its quantum, trr, its quantum. With `before`, lctl outlives who called it."""


@pytest.mark.soak
@pytest.mark.parametrize("point", KILLED_AT)
def test_wherever_it_is_killed_what_was_there_is_restored(oss: Node, point: str) -> None:
    """`instead 1` is between the note and the first setting, `after 4` between the last one and its note."""
    oss.set(f"{IO}.nrs_policies", "orr")
    oss.set(f"{IO}.nrs_orr_quantum", "reg_quantum:32")
    before, (when, number) = oss.now(), point.split()
    count, killer = oss.root / "count", oss.root / "killer.sh"
    kill, run = f"[ $n = {number} ] && kill -9 $PPID || true", f'{lctl_command(oss.root)} "$@"'
    steps = {
        "before": [kill, run],
        "instead": [f"{kill}; [ $n = {number} ] && exit", run],
        "after": [run, kill],
    }
    killer.write_text(f"#!/bin/sh\necho x >> {count}; n=$(wc -l < {count})\n" + "\n".join(steps[when]) + "\n")
    killer.chmod(0o755)
    pid = os.fork()
    if pid == 0:
        try:
            keeper = oss.keeper(str(killer))
            keeper.apply({"nrs": "crrn 32"}, WHY)
            keeper.apply({"nrs": "trr 64"}, WHY)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert noted(oss)
    assert oss.keeper().take_back("left by a former run", wait_s=10.0).restored == ("nrs",)
    assert oss.now() == before and noted(oss) == {}


def test_who_comes_after_a_killed_one_waits_for_its_lctl(client: Node) -> None:
    begun, slow = client.root / "begun", client.root / "slow.sh"
    slow.write_text(f'#!/bin/sh\ntouch {begun} && sleep 0.3\nexec {lctl_command(client.root)} "$@"\n')
    slow.chmod(0o755)
    before, pid = client.now(), os.fork()
    if pid == 0:
        try:
            client.keeper(str(slow)).apply({"max_read_ahead_mb": "64"}, WHY)
        finally:
            os._exit(0)
    while not begun.exists():
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with pytest.raises(Unavailable, match="lock"):
        client.keeper().take_back("left by a former run")
    assert client.keeper().take_back("left by a former run", wait_s=10.0).restored
    assert client.now() == before


def test_an_lctl_that_hangs_is_given_up_and_what_it_may_have_done_is_restored(client: Node) -> None:
    hangs = client.root / "hangs.sh"
    hangs.write_text(f'#!/bin/sh\n{lctl_command(client.root)} "$@"\nexec sleep 60\n')
    hangs.chmod(0o755)
    before, keeper = client.now(), client.keeper(str(hangs), timeout_s=0.2)
    begun = time.monotonic()
    done = keeper.apply({"max_read_ahead_mb": "64"}, WHY)
    assert "expected an answer within 0.2 s" in dict(done.failed)["max_read_ahead_mb"]
    assert time.monotonic() - begun < 5 and noted(client) == {"max_read_ahead_mb": ["", "64"]}
    assert undo(settings_of(client)).restored == ("max_read_ahead_mb",) and client.now() == before


def test_what_cannot_be_restored_now_stays_noted(client: Node) -> None:
    client.keeper().apply({"max_read_ahead_mb": "64"}, WHY)
    broken = client.keeper("/nonexistent/lctl")
    for _ in range(3):
        assert dict(broken.take_back(WHY).failed).keys() <= {"max_read_ahead_mb"}
        broken._failed.clear()
    assert noted(client) == {"max_read_ahead_mb": ["64", ""]}
    assert client.keeper().take_back(WHY).restored == ("max_read_ahead_mb",)
    assert client.keeper().in_force()["max_read_ahead_mb"] == "256"


def test_half_written_notes_of_a_killed_one_do_not_pile_up(client: Node) -> None:
    client.state.mkdir()
    (client.state / ".levers.json.0123abcd.part").write_text("{")
    assert client.keeper().apply({"max_read_ahead_mb": "64"}, WHY).set
    assert sorted(path.name for path in client.state.iterdir()) == ["levers.json", "lock"]


def test_an_lctl_that_is_not_there_sets_nothing(client: Node) -> None:
    done = client.keeper("/nonexistent/lctl").apply({"max_read_ahead_mb": "64"}, WHY)
    assert "No such file" in dict(done.failed)["max_read_ahead_mb"] and noted(client) == {}


def test_after_a_boot_nothing_is_ours(client: Node, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    client.keeper().apply({"max_read_ahead_mb": "64"}, WHY)
    boot = tmp_path / "boot_id"
    boot.write_text("another\n")
    monkeypatch.setattr("tarazu.durable.BOOT_ID", boot)
    # As if the site's own scripts had set it at boot.
    assert client.keeper().take_back("left by a former run") == Done()
    assert client.keeper().in_force()["max_read_ahead_mb"] == "64"


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_on_a_full_disk_nothing_is_set_and_all_is_restored(
    client: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, keeper = client.now(), client.keeper()
    keeper.apply({"max_read_ahead_mb": "64", "max_rpcs_in_flight": "16"}, WHY)
    monkeypatch.setattr(durable, "replace", full)
    done = keeper.apply({"max_read_ahead_mb": "1024", "max_rpcs_in_flight": "16"}, WHY)
    assert "No space left" in dict(done.failed)["max_read_ahead_mb"]
    assert keeper.levers["max_read_ahead_mb"].current() == "64"
    undone = undo(settings_of(client))
    assert {*undone.restored} == {"max_read_ahead_mb", "max_rpcs_in_flight"} and client.now() == before
    assert "No space left" in undone.not_held
    monkeypatch.undo()
    keeper.take_back(WHY)
    assert noted(client) == {} and client.now() == before


def test_notes_that_cannot_grow_are_an_error_before_anything_is_set(oss: Node) -> None:
    keeper, calls = oss.keeper(), len(oss.program.calls)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, old[1]))
    try:
        done = keeper.apply({"nrs": "crrn 8"}, WHY)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert "found 'File too large'" in dict(done.failed)["nrs"] and len(oss.program.calls) == calls
    assert noted(oss) == {} and [path.name for path in oss.state.iterdir()] == ["lock"]


def test_one_daemon_on_a_node(client: Node) -> None:
    first = client.keeper().kept.claim()
    with pytest.raises(Unavailable, match="another tarazu-announcer"):
        client.keeper().kept.claim()
    os.close(first)
    os.close(client.keeper().kept.claim())


def test_two_that_set_at_once_by_mistake_restore_what_was_there_first(client: Node) -> None:
    """Two councils, or two announcers: what is noted is what was there before either."""
    one, other, before = client.keeper(), client.keeper(), client.now()
    one.apply({"max_read_ahead_mb": "64"}, "one council")
    other.apply({"max_read_ahead_mb": "1024"}, "another council")
    one.apply({"max_read_ahead_mb": "64"}, "one council")
    assert other.take_back(WHY).restored and client.now() == before


def test_an_oss_without_lustre_has_no_levers(tmp_path: Path) -> None:
    node = Node(tmp_path, ("nrs", "max_rpcs_in_flight"))
    keeper: Keeper = node.keeper()
    done = keeper.apply({"nrs": "crrn 8", "max_rpcs_in_flight": "8"}, WHY)
    assert {name for name, _ in done.failed} == {"nrs", "max_rpcs_in_flight"} and keeper.take_back(
        WHY
    ) == Done()
    assert keeper.in_force() == {}
