"""Whatever happens to a node in whatever order, undo leaves each parameter as whoever else set it last."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu import durable
from tarazu.daemons.levers import keeper as keepers
from tarazu.daemons.levers.keeper import Keeper
from tarazu.daemons.levers.kept import Kept
from tarazu.daemons.program import Answer
from tarazu.sim.testbed import tunables

from .conftest import Here, Node

IO = "ost.OSS.ost_io"
NRS = st.sampled_from(["", "fifo", "crrn 8", "crrn 32", "orr 256", "trr 64"])
RPCS = st.sampled_from(["", "4", "16"])
AHEAD = st.sampled_from(["", "64", "1024"])

wanted = st.fixed_dictionaries({"nrs": NRS, "max_rpcs_in_flight": RPCS, "max_read_ahead_mb": AHEAD})
crash = st.one_of(st.none(), st.tuples(st.sampled_from(["lctl", "note"]), st.integers(1, 5), st.booleans()))
step = st.one_of(
    st.tuples(st.just("apply"), wanted, crash),
    st.tuples(
        st.just("administrator"), st.sampled_from(["both", "hp", "osc 0", "osc 1", "llite"]), st.just(None)
    ),
    st.tuples(st.just("resume"), st.just(None), st.just(None)),
)


class Killed(BaseException):
    """Here the process dies."""


class Dying:
    """Calls a function until the nth time; then the process dies before or after it."""

    def __init__(self, function: Callable[..., Any], at: int, after: bool) -> None:
        self.function, self.left, self.after = function, at, after

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Killed
        found = self.function(*arguments, **more)
        if self.left == 0:
            raise Killed
        return found


def apply(node: Node, values: dict[str, str], crash: tuple[str, int, bool] | None) -> None:
    keeper = node.keeper()
    with pytest.MonkeyPatch.context() as patch:
        if crash and crash[0] == "lctl":
            patch.setattr(node.program, "call", Dying(Here(node.root).call, *crash[1:]))
        elif crash:
            patch.setattr(durable, "replace", Dying(durable.replace, *crash[1:]))
        with contextlib.suppress(Killed):
            keeper.apply({name: value for name, value in values.items() if value}, "")


def administrator(node: Node, what: str, number: int) -> None:
    """Values that are in no list."""
    if what in ("both", "hp"):
        queue, prefix = ("", "") if what == "both" else (" hp", "hp_quantum:")
        node.set(f"{IO}.nrs_policies", f"trr{queue}")
        node.set(f"{IO}.nrs_trr_quantum", f"{prefix}{1000 + number}")
    elif what == "llite":
        node.set("llite.*.max_read_ahead_mb", str(300 + number))
    else:
        node.set(f"osc.lustre-OST000{what[-1]}-*.max_rpcs_in_flight", str(100 + number))


def in_force(keeper: Keeper) -> dict[str, str]:
    return {p.name: p.value for lever in keeper.levers.values() for p in lever.now()}


@settings(max_examples=40)
@given(st.lists(step, min_size=2, max_size=9))
def test_undo_leaves_what_whoever_else_set_last(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(keepers, "LOOK_S", 0.0)
        root = Path(directory)
        tunables.make_oss(root)
        tunables.make_client(root, "lustre", 0, 2)
        node = Node(root, ("nrs", "max_rpcs_in_flight", "max_read_ahead_mb"))
        expected = in_force(node.keeper())
        for number, (kind, what, how) in enumerate(steps):
            if kind == "apply":
                apply(node, what, how)
            elif kind == "resume":
                node.keeper().take_back("")
                kept = Kept(node.state)
                with kept.locked():
                    kept.note({name: note for name, note in kept.levers.items() if not note.left_to})
            else:
                before = in_force(node.keeper())
                administrator(node, what, number)
                now = in_force(node.keeper())
                # His setting of one queue can hide the quantum of the other.
                expected |= {n: v for n, v in now.items() if v != before[n] and "?" not in v}
        done = node.keeper().take_back("tarazu tune --undo")
        assert done.failed == () and in_force(node.keeper()) == expected


def test_a_program_that_is_called_here_answers_as_one(tmp_path: Path) -> None:
    tunables.make_oss(tmp_path)
    answer: Answer = Here(tmp_path).call(("set_param", f"{IO}.nrs_policies=crrn"))
    assert answer == ("lctl set_param ost.OSS.ost_io.nrs_policies=crrn", 0, f"{IO}.nrs_policies=crrn\n", "")
