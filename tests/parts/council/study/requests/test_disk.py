"""A disk takes the time that physics says: turns that are lost, seeks, data that is there already."""

from __future__ import annotations

from random import Random

import pytest

from tarazu.parts.council.study.requests.disk import Drive
from tarazu.parts.council.study.requests.request import Access, Piece, Request
from tarazu.parts.council.study.requests.system import Disk

DISK = Disk()
SIZE = 32 << 10
FAR = 200_000_000_000


def access(start: int, *, write: bool, queued: float = 0.0, size: int = SIZE) -> Access:
    one = Access(0, [Piece(Request(0, 0, 0, start, size, write), 0, start, size)])
    one.queued = queued
    return one


def stream(drive: Drive, write: bool, pause_s: float, *, ahead: bool = False, count: int = 200) -> float:
    """Bytes a second of accesses behind one another, each told `pause_s` after the last, or before it ended."""
    now = drive.serve(access(0, write=write), 0.0)
    begin = now
    for number in range(1, count):
        queued = 0.0 if ahead else now + pause_s
        now = drive.serve(access(number * SIZE, write=write, queued=queued), now if ahead else queued)
    return (count - 1) * SIZE / (now - begin)


@pytest.mark.parametrize("write", [False, True])
def test_what_is_queued_behind_one_another_goes_at_the_rate_of_the_disk(write: bool) -> None:
    assert stream(Drive(DISK), write, 0.0, ahead=True) == pytest.approx(DISK.bytes_per_s, rel=1e-6)


def test_one_who_writes_on_a_little_late_loses_a_turn_each_time() -> None:
    rate = stream(Drive(DISK), True, 20e-6)
    assert rate == pytest.approx(SIZE / (DISK.rotation_s + SIZE / DISK.bytes_per_s), rel=0.01)


@pytest.mark.parametrize("write", [False, True])
def test_a_random_access_takes_a_seek_and_half_a_turn_on_average(write: bool) -> None:
    drive = Drive(DISK)
    now = 0.0
    count = 2000
    random = Random(1)
    for number in range(count):
        # Over a third of the disk each time, at any angle.
        start = (number % 2) * FAR + random.randrange(10**8)
        now = drive.serve(access(start, write=write, queued=now), now)
    seek = DISK.average_seek_write_s if write else DISK.average_seek_read_s
    expected = DISK.command_s + seek + DISK.rotation_s / 2 + SIZE / DISK.bytes_per_s
    assert now / count == pytest.approx(expected, rel=0.05)


def test_a_second_stream_costs_seeks_and_its_data_are_kept() -> None:
    drive = Drive(DISK)
    now = drive.serve(access(0, write=False), 0.0)
    now += 0.5 * DISK.segment_bytes / DISK.bytes_per_s  # it reads ahead meanwhile
    there = drive.serve(access(FAR, write=False, queued=now), now)
    assert there - now > DISK.average_seek_read_s
    back = drive.serve(access(SIZE, write=False, queued=there), there)
    assert back - there == pytest.approx(DISK.command_s + SIZE / DISK.buffer_bytes_per_s), "from the buffer"
    wrote = drive.serve(access(SIZE, write=True, queued=back), back)
    again = drive.serve(access(SIZE, write=False, queued=wrote), wrote)
    assert again - wrote > DISK.command_s + SIZE / DISK.bytes_per_s, (
        "what was written over is read from the disk"
    )
