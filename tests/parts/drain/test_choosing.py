"""Soft drain: who is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tarazu.errors import BadInput
from tarazu.model import Oss, SystemView
from tarazu.parts.drain import choosing
from tests.allocate.conftest import Make


def view_of(each: Callable[[int], dict[str, Any]], load: float = 0.0) -> SystemView:
    view = Make().view(20, each=each)
    servers = tuple(Oss(o.name, cpu_load=load if o.name == "oss1" else 0.1) for o in view.osses)
    return msgspec.structs.replace(view, osses=servers)


class TestCandidates:
    def test_nobody_on_a_healthy_system(self) -> None:
        assert choosing.candidates(view_of(lambda i: {"relative_speed": 1.0 - i / 100}), 0.5) == []
        assert choosing.candidates(view_of(lambda i: {}), 0.5) == []

    def test_the_worst_first_and_never_more_than_the_share(self) -> None:
        speeds = {3: 0.1, 7: 0.01, 11: 0.2}
        view = view_of(lambda i: {"relative_speed": speeds.get(i, 1.0)})
        found = choosing.candidates(view, 0.1)
        assert [(c.ost, c.held_back) for c in found] == [(7, False), (3, False), (11, True)]
        assert found[0].why == "sick: 100.0 times slower than its peers"
        assert all(c.held_back for c in choosing.candidates(view, 0.04))
        assert all(c.held_back for c in choosing.candidates(view, 0.0))

    def test_osts_that_are_out_already_count(self) -> None:
        def each(i: int) -> dict[str, Any]:
            return {"relative_speed": 0.01 if i < 2 else 1.0, "degraded": i == 0, "no_create": i == 19}

        assert [(c.ost, c.held_back) for c in choosing.candidates(view_of(each), 0.1)] == [(1, True)]
        assert [(c.ost, c.held_back) for c in choosing.candidates(view_of(each), 0.15)] == [(1, False)]

    def test_hot_servers(self) -> None:
        view = view_of(lambda i: {"relative_speed": 0.02 if i == 9 else 1.0}, load=0.97)
        found = choosing.candidates(view, 1.0)
        assert [c.ost for c in found] == [9, 4, 5, 6, 7]
        assert "0.97" in found[1].why


class TestNamed:
    def test_an_ost_that_is_named_is_drained_whatever_it_is_like_within_the_share(self) -> None:
        view = view_of(lambda i: {"write_bytes_per_s": 1e9, "degraded": i == 0})
        found = choosing.named(view, 0.1, [7, 3, 0, 7])
        assert [(c.ost, c.why, c.held_back) for c in found] == [
            (7, "named", False), (3, "named", True), (0, "named", False),
        ]  # fmt: skip
        with pytest.raises(BadInput, match=r"--ost: expected OSTs of lustre, 0 to 19, found \[20, 99\]"):
            choosing.named(view, 1.0, [1, 99, 20])


def test_without_an_ost_that_takes_files_all_are_too_full() -> None:
    osts = view_of(lambda i: {} if i < 2 else {"degraded": True} if i < 5 else {"no_create": True}).osts
    assert [choosing.too_full(osts, out) for out in ((), (0,), (0, 1))] == [0.0, 0.0, 1.0]
