"""Lustre's allocator in the emulated MDS, against what a real one with 7 OSSs x 5 OSTs did (tests/data/lsa)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.sim.testbed import Testbed

DATA = Path(__file__).parents[1] / "data" / "lsa"
OSS_ORDER = (0, 4, 6, 1, 2, 5, 3)
"""In which order the servers had registered on the captured system: read off its round-robin cycle."""
START = {"rr-c1": (69, 12), "rr-c3": (46, 34), "rr-c8": (46, 5), "rr-c16": (46, 21)}
"""Cursor and precession (`lqr_start_idx`, `lqr_offset_idx`) at the start of each capture."""


def captured(name: str) -> list[list[int]]:
    return [[int(x) for x in line.split()[1:]] for line in (DATA / f"{name}.txt").read_text().splitlines()]


def created(agent, count: int, stripes: int, prefix: str = "f") -> list[list[int]]:
    return agent(f"""
        os.setxattr('.', 'lustre.lov', plain({stripes}))
        result = []
        for i in range({count}):
            name = '{prefix}%d' % i
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
            result += osts(name)
    """)


def test_round_robin_is_the_captured_sequence(new_bed, make_agent):
    bed = new_bed()
    for place, server in enumerate(OSS_ORDER):
        bed.mds.set("oss_order", server, place)
    agent = make_agent(bed)
    for name, (start, offset) in START.items():
        want = captured(name)
        for field, value in (("rr_start_idx", start), ("rr_offset_idx", offset), ("rr_start_count", 10**6)):
            bed.mds.set(field, value)
        assert created(agent, len(want), len(want[0]), f"{name}.") == want


def unequal(new_bed, seed: int) -> Testbed:
    rows = [line.split() for line in (DATA / "df.unequal.txt").read_text().splitlines() if "OST" in line]
    total = [int(row[1]) * 1024 for row in rows]
    # What is kept back on ldiskfs counts as used here.
    fill = [1 - int(row[3]) * 1024 / size for row, size in zip(rows, total, strict=True)]
    return new_bed(ost_bytes=total[0], fill=fill, seed=seed)


@pytest.mark.parametrize(("name", "stripes"), [("qos-c1", 1), ("qos-c4", 4)])
def test_weighted_mode_has_the_captured_shape(new_bed, make_agent, name, stripes):
    want = captured(name)
    got = created(make_agent(unequal(new_bed, 1)), len(want), stripes)
    assert all(len(set(file)) == stripes for file in got)

    def fifths(files: list[list[int]]) -> list[int]:
        flat = [ost for file in files for ost in file]
        return [sum(1 for ost in flat if ost // 7 == part) for part in range(5)]

    shape, observed = fifths(got), fifths(want)
    assert shape == sorted(shape, reverse=True)
    for ours, theirs in zip(shape, observed, strict=True):
        assert abs(ours - theirs) < 0.2 * 140
    assert got != want
