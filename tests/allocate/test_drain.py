"""Soft drain: who is chosen, what is set, that only that is undone; end to end on the testbed."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu import config
from tarazu.cli import live, main
from tarazu.cli.live import mdsd_status
from tarazu.errors import StoreError, Unavailable
from tarazu.model import Oss, SystemView
from tarazu.sim.demo import wait_until_ready
from tarazu.sim.testbed import Testbed, down, up
from tarazu.sim.testbed.configuration import configure
from tarazu.stats import drain

SICK = 5


def view_of(make: Any, each: Callable[[int], dict[str, Any]], load: float = 0.0) -> SystemView:
    view = make.view(20, each=each)
    servers = tuple(Oss(o.name, cpu_load=load if o.name == "oss1" else 0.1) for o in view.osses)
    return msgspec.structs.replace(view, osses=servers)


class TestCandidates:
    def test_nobody_on_a_healthy_system(self, make: Any) -> None:
        assert drain.candidates(view_of(make, lambda i: {"write_bytes_per_s": 1e9 + i}), 0.5) == []
        assert drain.candidates(view_of(make, lambda i: {}), 0.5) == []

    def test_the_worst_first_and_never_more_than_the_share(self, make: Any) -> None:
        speeds = {3: 1e8, 7: 1e7, 11: 2e8}
        view = view_of(make, lambda i: {"write_bytes_per_s": speeds.get(i, 1e9)})
        found = drain.candidates(view, 0.1)
        assert [(c.ost, c.held_back) for c in found] == [(7, False), (3, False), (11, True)]
        assert found[0].why == "sick: 100.0 times slower than its peers"
        assert all(c.held_back for c in drain.candidates(view, 0.04))
        assert all(c.held_back for c in drain.candidates(view, 0.0))

    def test_osts_that_are_out_already_count(self, make: Any) -> None:
        def each(i: int) -> dict[str, Any]:
            return {"write_bytes_per_s": 1e7 if i < 2 else 1e9, "degraded": i == 0, "no_create": i == 19}

        assert [(c.ost, c.held_back) for c in drain.candidates(view_of(make, each), 0.1)] == [(1, True)]
        assert [(c.ost, c.held_back) for c in drain.candidates(view_of(make, each), 0.15)] == [(1, False)]

    def test_latency_where_the_speed_is_unknown_and_hot_servers(self, make: Any) -> None:
        view = view_of(make, lambda i: {"write_latency_s": 0.5 if i == 9 else 0.01}, load=0.97)
        found = drain.candidates(view, 1.0)
        assert [c.ost for c in found] == [9, 4, 5, 6, 7]
        assert "latency 50.0 times" in found[0].why and "0.97" in found[1].why


class TestState:
    def node(self, root: Path, value: int = 0) -> Path:
        path = root / "sys/fs/lustre/obdfilter/lustre-OST000a/degraded"
        path.parent.mkdir(parents=True)
        path.write_text(f"{value}\n")
        return path

    def test_a_node_without_parameters_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(Unavailable, match=r"expected obdfilter\.\*\.degraded or osp\."):
            drain.apply("lustre", [10], tmp_path, tmp_path / "state.json")
        assert not (tmp_path / "state.json").exists()

    def test_only_own_changes_are_undone(self, tmp_path: Path) -> None:
        path, state = self.node(tmp_path), tmp_path / "var/state.json"
        (change,) = drain.apply("lustre", [10], tmp_path, state)
        assert (change.parameter, change.before, change.after) == ("obdfilter.lustre-OST000a.degraded", 0, 1)
        assert path.read_text() == "1\n"
        assert drain.apply("lustre", [10], tmp_path, state) == [], "it is set already"
        assert drain.read_state(state) == [change]
        assert drain.undo(state) == ([change], [])
        assert path.read_text() == "0\n" and not state.exists()
        assert drain.undo(state) == ([], [])

    def test_what_others_set_stays(self, tmp_path: Path) -> None:
        path, state = self.node(tmp_path, 1), tmp_path / "state.json"
        assert drain.apply("lustre", [10], tmp_path, state) == []
        drain.undo(state)
        assert path.read_text() == "1\n"

    def test_what_others_changed_since_stays(self, tmp_path: Path) -> None:
        path, state = self.node(tmp_path), tmp_path / "state.json"
        (change,) = drain.apply("lustre", [10], tmp_path, state)
        path.write_text("2\n")
        assert drain.undo(state) == ([], [(change, "is 2 now, set by someone else")])
        assert path.read_text() == "2\n" and not state.exists()

    def test_a_target_that_has_moved_is_remembered(self, tmp_path: Path) -> None:
        path, state = self.node(tmp_path), tmp_path / "state.json"
        (change,) = drain.apply("lustre", [10], tmp_path, state)
        path.rename(path.with_name("elsewhere"))
        assert drain.undo(state)[1][0][0] == change
        path.with_name("elsewhere").rename(path)
        assert drain.undo(state) == ([change], [])

    def test_another_file_system_is_left_alone(self, tmp_path: Path) -> None:
        path = self.node(tmp_path)
        assert drain.apply("scratch", [10], tmp_path, tmp_path / "state.json") == []
        assert path.read_text() == "0\n"

    def test_a_damaged_state_file_is_named(self, tmp_path: Path) -> None:
        self.node(tmp_path)
        (tmp_path / "state.json").write_text("{")
        with pytest.raises(StoreError, match=r"state\.json: expected the state of tarazu drain"):
            drain.apply("lustre", [10], tmp_path, tmp_path / "state.json")


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    """12 OSTs on 4 servers, with the daemons; OST 5 is 20 times slower, and all have been written to."""
    with tempfile.TemporaryDirectory(prefix="tz-drain-") as directory:
        bed = up(Path(directory) / "tb", osss=4, osts_per_oss=3, interval_s=0.2, slow={SICK: 20.0})
        try:
            configure(bed)
            bed.start_daemons()
            wait_until_ready(bed)
            script = "for i in $(seq 24); do dd if=/dev/zero of=$TESTBED_MOUNT/f$i bs=128M count=1; done"
            bed.exec(0, ["sh", "-c", script], capture_output=True).check_returncode()
            bed.refresh()
            yield bed
        finally:
            down(bed.directory)


def asked(bed: Testbed, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """What a command prints with --json, asked as on a server: without clientd."""
    assert main([*words, "--json", "--config", str(bed.directory / "etc/tarazu.toml")]) == 0
    return json.loads(capsys.readouterr().out)


def wait_for(bed: Testbed, holds: Callable[[dict[str, Any]], Any]) -> None:
    settings = config.load(bed.directory / "etc/tarazu.toml")
    deadline = time.monotonic() + 20
    while not holds(mdsd_status(settings)["file_systems"]["lustre"]["osts"][SICK]):
        assert time.monotonic() < deadline, mdsd_status(settings)["file_systems"]["lustre"]["osts"]
        time.sleep(0.1)


@pytest.fixture
def sick(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> Testbed:
    monkeypatch.setenv("TARAZU_CLIENTD_SOCKET", "/nonexistent")
    wait_for(testbed, lambda ost: ost["write_bytes_per_s"] is not None and not ost["degraded"])
    return testbed


def test_costs_of_the_live_view(sick: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    shown = asked(sick, capsys, "explain", "--costs")
    assert [o["ost"] for o in shown["osts"]] == list(range(12))
    assert shown["osts"][SICK]["speed"] == pytest.approx(1 / 20, rel=0.3)
    assert shown["osts"][SICK]["share"] < 0.2
    assert {o["source"] for o in shown["osts"]} == {"brw_stats"}
    assert shown["weights"]["fill"] == 0.5
    assert main(["explain", "--costs", "--config", str(sick.directory / "etc/tarazu.toml")]) == 0
    table = capsys.readouterr().out
    assert "oss2" in table and "weights ([allocate]): fill 0.5" in table
    assert "speed by" in table and table.count(" brw_stats") == 12


def test_the_status_names_the_source_of_a_speed(
    testbed: Testbed, sick: Testbed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TARAZU_CLIENTD_SOCKET", str(testbed.client_root() / "clientd.sock"))
    shown = asked(testbed, capsys, "status")["mdsd"]
    ost = shown["file_systems"]["lustre"]["osts"][SICK]
    assert ost["speed_source"] == "brw_stats" and ost["relative_speed"] == pytest.approx(1 / 20, rel=0.3)
    assert shown["osses"]["oss2"]["impossible"] == []
    assert main(["status", "--config", str(testbed.directory / "etc/tarazu.toml")]) == 0
    table = capsys.readouterr().out
    assert "of peers" in table and table.count(" brw_stats") == 12 and " 1/" in table


def test_advise_changes_nothing(sick: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    shown = asked(sick, capsys, "drain", "--advise", "--share", "0.1")
    assert [(c["ost"], c["oss"], c["held_back"]) for c in shown["osts"]] == [(SICK, "oss2", False)]
    assert shown["commands"] == {
        "5": {
            "degraded": "lctl set_param obdfilter.lustre-OST0005.degraded=1",
            "no_create": "lctl set_param obdfilter.lustre-OST0005.no_create=1",
            "max_create_count": "lctl set_param osp.lustre-OST0005-osc-MDT*.max_create_count=0",
        }
    }
    assert main(["drain", "--advise", "--config", str(sick.directory / "etc/tarazu.toml")]) == 0
    assert "on OSS oss2 (2.12 and later" in capsys.readouterr().out
    assert drain.here(sick.oss_root("oss2"))["degraded"][SICK % 3][1].read_text().strip() == "0"


def test_apply_and_undo_on_the_servers(sick: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    state = sick.directory / "drain.json"
    on = ("drain", "--apply", "--state", str(state), "--root")
    assert asked(sick, capsys, *on, str(sick.oss_root("oss1")))["changed"] == [], "not its OST"
    (change,) = asked(sick, capsys, *on, str(sick.oss_root("oss2")))["changed"]
    assert change["parameter"] == "obdfilter.lustre-OST0005.degraded"
    wait_for(sick, lambda ost: ost["degraded"])
    assert asked(sick, capsys, *on, str(sick.mds_root))["changed"] == [], "the share is used up"
    (undone,) = asked(sick, capsys, "drain", "--undo", "--state", str(state))["restored"]
    assert undone == change
    wait_for(sick, lambda ost: not ost["degraded"])
    assert not state.exists()


def test_apply_on_the_mds(sick: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    state = sick.directory / "mds-drain.json"
    path = sick.mds_root / "sys/fs/lustre/osp/lustre-OST0005-osc-MDT0000/max_create_count"
    shown = asked(sick, capsys, "drain", "--apply", "--state", str(state), "--root", str(sick.mds_root))
    assert [(c["before"], c["after"]) for c in shown["changed"]] == [(20000, 0)]
    assert path.read_text() == "0\n"
    assert len(asked(sick, capsys, "drain", "--undo", "--state", str(state))["restored"]) == 1
    assert path.read_text() == "20000\n"


def test_apply_away_from_a_server_is_refused(sick: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["drain", "--apply", "--config", str(sick.directory / "etc/tarazu.toml")]
    assert main([*words, "--root", str(sick.client_root())]) == 1
    assert "expected obdfilter.*.degraded" in capsys.readouterr().err


def test_without_mdsd_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "TIMEOUT_S", 0.3)
    (tmp_path / "t.toml").write_text(
        "[mdsd]\nrequests = 'tcp://127.0.0.1:1'\n[keys]\ndirectory = '/nonexistent'\n"
        "[clientd]\nsocket = '/nonexistent'\n"
    )
    run = ["drain", "--advise", "--config", str(tmp_path / "t.toml")]
    assert main(run) == 1
    assert "expected an answer" in capsys.readouterr().err
