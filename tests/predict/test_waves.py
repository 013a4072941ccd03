"""Files that are open at one time get one number, whoever writes them."""

from __future__ import annotations

from random import Random

import pytest

from tarazu.predict.waves import waves_of


def numbers(*spans: tuple[float, ...]) -> list[int]:
    """Of files with these times of open and close, and bytes (1 where there are none)."""
    return waves_of([s[0] for s in spans], [s[1] for s in spans], [s[2] if len(s) > 2 else 1 for s in spans])


def stepped(
    writers: int, steps: int, period_s: float, jitter_s: float, takes_s: float
) -> list[tuple[float, float]]:
    random = Random(writers)
    begins = [step * period_s + random.uniform(0, jitter_s) for step in range(steps) for _ in range(writers)]
    return [(at_s, at_s + takes_s) for at_s in begins]


@pytest.mark.parametrize(("writers", "jitter_s"), [(2, 0.0), (4, 3.0), (64, 20.0), (1000, 1.0)])
def test_steps_with_pauses_between_them(writers: int, jitter_s: float) -> None:
    spans = stepped(writers, 10, 60.0, jitter_s, takes_s=20.0)
    assert numbers(*spans) == [step for step in range(10) for _ in range(writers)]


def test_one_after_another_are_waves_of_their_own() -> None:
    assert numbers(*((n, n + 0.9) for n in range(8))) == list(range(8))
    assert numbers(*((n, n + 1) for n in range(8))) == list(range(8))  # closed as the next is opened


def test_all_at_once_are_one() -> None:
    assert numbers(*((0.01 * n, 2.0 - 0.01 * n) for n in range(16))) == [0] * 16


def test_each_of_several_writes_one_after_another() -> None:
    spans = [(3 * nth + 0.1 * w, 3 * nth + 0.1 * w + 2.99) for nth in range(5) for w in range(8)]
    assert numbers(*spans) == [nth for nth in range(5) for _ in range(8)]


def test_a_pool_writes_as_many_at_a_time_as_it_has_processes() -> None:
    """Each file overlaps the next; they are not all written at once for that."""
    ends, spans, random = [0.1 * n for n in range(6)], [], Random(3)
    for _ in range(60):
        worker = ends.index(min(ends))
        begin, ends[worker] = ends[worker], ends[worker] + random.uniform(0.8, 1.2)
        spans.append((begin, ends[worker] - 0.001))
    of = numbers(*spans)
    sizes = [of.count(wave) for wave in range(max(of) + 1)]
    assert max(sizes) <= 7 and sum(sizes) / len(sizes) >= 5


def test_a_long_file_is_beside_the_first_of_those_that_come_one_after_another() -> None:
    assert numbers((0, 10), (1, 2), (3, 4), (5, 6)) == [0, 0, 1, 2]


def test_small_headers_do_not_part_the_data_behind_them() -> None:
    spans = [s for n in range(16) for s in ((0.01 * n, 0.01 * n + 0.05, 1), (0.01 * n + 0.05, 5, 100))]
    assert len({wave for wave, span in zip(numbers(*spans), spans, strict=True) if span[2] == 100}) == 1


def test_what_was_not_seen_closed_is_beside_all_that_follow() -> None:
    assert numbers((0, 0.0 - 1), (1, 0), (2, 0)) == [0, 0, 0]


def test_opened_at_one_moment_is_open_together() -> None:
    assert numbers((1, 1), (1, 1), (1, 2)) == [0, 0, 0]


def test_the_order_of_the_files_does_not_matter() -> None:
    spans = stepped(8, 5, 60.0, 2.0, takes_s=10.0)
    order = list(range(40))
    Random(4).shuffle(order)
    expected = numbers(*spans)
    assert numbers(*(spans[i] for i in order)) == [expected[i] for i in order]


def test_none_and_one() -> None:
    assert numbers() == []
    assert numbers((3.0, 4.0)) == [0]
