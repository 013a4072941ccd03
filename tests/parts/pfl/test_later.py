"""A component ends where more than one run or directory says so, or where it costs much; later where none does."""

from __future__ import annotations

import pytest

from tarazu.layout.rules import check
from tarazu.layout.setstripe import parse_layout
from tarazu.parts.pfl.cost import Target, of_layout
from tarazu.parts.pfl.later import MOST, ended_at, widened_later
from tarazu.parts.pfl.search import cheapest, fewest_of, grid
from tarazu.parts.pfl.sizes import BY_BYTES, Half, Halves, expected
from tarazu.parts.pfl.tuner import TUNED, Tuning, tune
from tarazu.units import GIB, MIB

TARGET = Target(35)


def half_of(runs: list[tuple[int, int, int]]) -> Half:
    """(files of a run, size, at once) → the larger half, whatever the names."""
    halves = Halves()
    for number, (files, size, at_once) in enumerate(runs):
        for n in range(files):
            halves.add(b"r%d" % number, b"r%d/%d" % (number, n), size, 1, at_once)
    return Half(halves._parts)


def searched(of: Half) -> tuple[int, int]:
    """End of the first component as searched, and as it is then."""
    to_come = expected(of.classes())
    on = grid(to_come, TARGET)
    layout = fewest_of(cheapest(to_come, TARGET, on)).layout
    later = widened_later(layout, of, BY_BYTES, TARGET, on.ends)
    check(later)
    train = of.classes()
    assert of_layout(train, TARGET, later).total <= of_layout(train, TARGET, layout).total * (1 + 3 * MOST)
    return layout.components[0].end_bytes, later.components[0].end_bytes


USUAL = [(20, 8 * MIB, 4)] * 30 + [(140, GIB, 140)] * 6
"""Which one stripe serves best, to 1 GiB."""


def test_one_run_alone_moves_no_end() -> None:
    before, after = searched(half_of([*USUAL, (15, 300 * MIB, 1)]))
    assert before < 300 * MIB and after >= GIB


def test_many_runs_do() -> None:
    before, after = searched(half_of([*USUAL, *[(1, 300 * MIB, 1)] * 40]))
    assert after == before < 300 * MIB


def test_what_costs_much_is_kept_though_it_is_one_run() -> None:
    alone = half_of([*[(20, 8 * MIB, 4)] * 60, (1, 20 * 1024 * GIB, 1)])
    found = tune(alone, alone, "run", Tuning(TARGET), {})
    assert of_layout(alone.classes(), TARGET, parse_layout(found.row(TUNED).setstripe)[0]).total < 1.5


def test_a_later_end_covers_what_lies_before_it() -> None:
    layout, _ = parse_layout("-E 64M -c 1 -S 1M -E 1G -c 2 -S 1M -E -1 -c 35 -S 1M")
    for end, counts in ((128 * MIB, [1, 2, 35]), (GIB, [1, 35]), (2 * GIB, [1, 35])):
        other = ended_at(layout, 0, end, TARGET)
        check(other)
        assert [c.stripe_count for c in other.components] == counts and other.components[0].end_bytes == end


@pytest.mark.parametrize("files", [1, 2])
def test_of_one_run_nothing_is_compared(files: int) -> None:
    before, after = searched(half_of([(files, 8 * GIB, 1)]))
    assert before == after
