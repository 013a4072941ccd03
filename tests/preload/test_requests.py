"""What placing costs the servers, counted by the testbed as a real Lustre was measured."""

from __future__ import annotations

from typing import Any

import pytest

Placed = Any
HIT = 1

FILES = 8
WRITER = """
import os, sys
flags = os.O_CREAT | os.O_WRONLY
for name in sys.argv[1:]:
    fd = os.open(name, flags, 0o644)
    os.pwrite(fd, b"x", 0)
    os.close(fd)
"""


def cost(placed: Placed, run: Any) -> dict[str, int]:
    """Requests that the run has sent, by kind."""
    before = placed.bed.mds.requests()
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    return {kind: count - before[kind] for kind, count in placed.bed.mds.requests().items()}


def to_mds(counts: dict[str, int]) -> int:
    return sum(count for kind, count in counts.items() if kind != "ost")


def beside_plain(
    placed: Placed, lists: Any, layout: Any, shared: bool = False, **extra: str
) -> tuple[dict[str, int], dict[str, int]]:
    """What the writer costs with such rows in the map, and before that without the library."""
    names = [f"f{i}" for i in range(FILES)]
    plain = cost(placed, lambda: placed.bare(["python3", "-c", WRITER, *names]))
    for name in names:
        (placed.mount / name).unlink()
    placed.map(*(placed.row(f"/{name}", *lists, layout=layout, shared=shared) for name in names))
    return cost(placed, lambda: placed.python(WRITER, *names, **extra)), plain


@pytest.mark.parametrize("record", ["light", "full"])
def test_a_placed_pfl_file_costs_seven_requests_to_the_mds(placed: Placed, record: str) -> None:
    ours, plain = beside_plain(placed, placed.three_lists, placed.three_parts, TARAZU_RECORD=record)
    assert {c.outcome for c in placed.creates} == {HIT} and len(placed.creates) == FILES
    assert to_mds(ours) - to_mds(plain) <= 7 * FILES
    # fallocate itself: a lock and the byte, on the one OST that holds the beginning of the last component.
    assert ours["ost"] - plain["ost"] <= 2 * FILES


@pytest.mark.parametrize("shared", [False, True])
def test_a_placed_plain_file_costs_eight_in_all(placed: Placed, shared: bool) -> None:
    ours, plain = beside_plain(placed, [(3, 1, 5)], None, shared)
    assert to_mds(ours) == 8 * FILES and to_mds(plain) == 2 * FILES and ours["ost"] == plain["ost"]


def test_a_planned_file_that_is_there_costs_three_requests_more(placed: Placed) -> None:
    """By O_CREAT, as counted on a real Lustre (3.0 and 6.0): an open that does not make it, a look for its layout."""
    names = [f"s{i}" for i in range(FILES)]
    placed.map(*(placed.row(f"/{n}", *placed.three_lists, layout=placed.three_parts) for n in names))
    assert placed.python(WRITER, *names).returncode == 0
    plain = cost(placed, lambda: placed.bare(["python3", "-c", WRITER, *names]))
    ours = cost(placed, lambda: placed.python(WRITER, *names))
    assert {c.outcome for c in placed.creates} == {HIT}
    assert to_mds(plain) == 3 * FILES and to_mds(ours) == 6 * FILES
    assert ours["ost"] == plain["ost"]


@pytest.mark.parametrize("mode", ["observe", "advise"])
def test_recording_alone_asks_for_nothing(placed: Placed, mode: str) -> None:
    ours, plain = beside_plain(placed, placed.three_lists, placed.three_parts, TARAZU_MODE=mode)
    assert len(placed.creates) == FILES and ours == plain


def test_who_opens_a_planned_file_that_is_there_asks_for_nothing_more(placed: Placed) -> None:
    source = "import os\nfor i in range(8): f = os.open('f', os.O_WRONLY); os.pwrite(f, b'x', 0); os.close(f)"
    placed.map(placed.row("/f", *placed.three_lists, layout=placed.three_parts))
    assert placed.python(WRITER, "f").returncode == 0
    plain = cost(placed, lambda: placed.bare(["python3", "-c", source]))
    assert cost(placed, lambda: placed.python(source)) == plain
