"""Whatever happens to a node in whatever order, undo leaves each parameter as whoever else set it last."""

from __future__ import annotations

import random
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.sim.testbed import tunables

from .conftest import Here
from .histories import ADMINISTRATOR, IO, VALUES, Apply, Crash, Resume, Set, Step, drawn, run

CRASHES = st.builds(Crash, st.sampled_from(["lctl", "note"]), st.integers(1, 5), st.booleans())
APPLIED = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()})
STEPS = st.one_of(
    st.builds(Apply, APPLIED, st.none() | CRASHES),
    st.builds(Set, st.sampled_from(ADMINISTRATOR)),
    st.builds(Resume),
)


@settings(max_examples=40)
@given(st.lists(STEPS, min_size=2, max_size=9))
def test_undo_leaves_what_whoever_else_set_last(steps: list[Step]) -> None:
    found, expected = run(steps)
    assert found == expected


def test_histories_that_are_drawn_have_all_that_can_happen() -> None:
    steps = [step for seed in range(30) for step in drawn(random.Random(seed))]
    kinds = {
        step.crash.at if isinstance(step, Apply) and step.crash else type(step).__name__ for step in steps
    }
    assert kinds == {"lctl", "note", "Apply", "Set", "Resume"}


def test_lctl_that_is_called_here_answers_as_a_process(tmp_path: Path) -> None:
    tunables.make_oss(tmp_path)
    answer = Here(tmp_path).call(("set_param", f"{IO}.nrs_policies=crrn"))
    assert answer == ("lctl set_param ost.OSS.ost_io.nrs_policies=crrn", 0, f"{IO}.nrs_policies=crrn\n", "")
