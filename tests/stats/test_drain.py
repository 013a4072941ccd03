"""Soft drain: who is chosen, what is set, that only that is undone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu.errors import StoreError, Unavailable
from tarazu.model import Oss, SystemView
from tarazu.stats import drain
from tests.allocate.conftest import Make


def view_of(each: Callable[[int], dict[str, Any]], load: float = 0.0) -> SystemView:
    view = Make().view(20, each=each)
    servers = tuple(Oss(o.name, cpu_load=load if o.name == "oss1" else 0.1) for o in view.osses)
    return msgspec.structs.replace(view, osses=servers)


class TestCandidates:
    def test_nobody_on_a_healthy_system(self) -> None:
        assert drain.candidates(view_of(lambda i: {"write_bytes_per_s": 1e9 + i}), 0.5) == []
        assert drain.candidates(view_of(lambda i: {}), 0.5) == []

    def test_the_worst_first_and_never_more_than_the_share(self) -> None:
        speeds = {3: 1e8, 7: 1e7, 11: 2e8}
        view = view_of(lambda i: {"write_bytes_per_s": speeds.get(i, 1e9)})
        found = drain.candidates(view, 0.1)
        assert [(c.ost, c.held_back) for c in found] == [(7, False), (3, False), (11, True)]
        assert found[0].why == "sick: 100.0 times slower than its peers"
        assert all(c.held_back for c in drain.candidates(view, 0.04))
        assert all(c.held_back for c in drain.candidates(view, 0.0))

    def test_osts_that_are_out_already_count(self) -> None:
        def each(i: int) -> dict[str, Any]:
            return {"write_bytes_per_s": 1e7 if i < 2 else 1e9, "degraded": i == 0, "no_create": i == 19}

        assert [(c.ost, c.held_back) for c in drain.candidates(view_of(each), 0.1)] == [(1, True)]
        assert [(c.ost, c.held_back) for c in drain.candidates(view_of(each), 0.15)] == [(1, False)]

    def test_latency_where_the_speed_is_unknown_and_hot_servers(self) -> None:
        view = view_of(lambda i: {"write_latency_s": 0.5 if i == 9 else 0.01}, load=0.97)
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
