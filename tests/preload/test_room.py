"""What the library takes of a program's address space and memory."""

from __future__ import annotations

from typing import Any

import pytest

Runs = Any


def numbers(done: Any) -> tuple[int, int]:
    assert (done.returncode, done.stderr) == (0, "")
    size_kib, malloc_mib = done.stdout.split()
    return int(size_kib), int(malloc_mib)


@pytest.mark.parametrize("record", ["light", "full"])
def test_a_recording_process_is_a_mebibyte_larger_than_without(
    plain: Runs, compiled: Any, record: str
) -> None:
    program = [compiled("room.c"), "20"]
    bare, _ = numbers(plain.bare(program))
    size, _ = numbers(plain(program, TARAZU_RECORD=record))
    assert len(plain.creates) == 20 and size - bare <= 1024


def test_where_address_space_is_short_the_program_gets_it(plain: Runs, compiled: Any) -> None:
    """As batch systems limit it (`h_vmem`): what the library maps, its own code apart, is a 64th at most."""
    for kib, files in ((131072, "3000"), (65536, "100"), (16384, "20")):
        program = ["sh", "-c", f"ulimit -v {kib}; exec {compiled('room.c')} {files}"]
        _, bare = numbers(plain.bare(program))
        _, malloc_mib = numbers(plain(program, TARAZU_RECORD="full"))
        assert bare - malloc_mib <= 1 + kib / 65536
        assert kib < 65536 or len(plain.creates) == int(files)


@pytest.mark.parametrize("limit", ["-v", "-d"])
def test_what_finds_no_room_under_a_limit_is_counted(plain: Runs, compiled: Any, limit: str) -> None:
    program = ["sh", "-c", f"ulimit {limit} 131072; exec {compiled('room.c')} 6000"]
    numbers(plain(program, TARAZU_RECORD="full"))
    records = len(plain.creates) + len(plain.closes)
    assert records > 1000 and records + sum(s.dropped for s in plain.all_spools) == 12000
