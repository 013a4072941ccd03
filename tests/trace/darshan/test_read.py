from __future__ import annotations

import time
from importlib.resources import files as resources
from pathlib import Path

import numpy as np
import pytest

from tarazu.errors import TraceError
from tarazu.lustre import EOF
from tarazu.trace.darshan.log import GAPS, DarshanLog, Gap
from tarazu.trace.darshan.read import read, segments
from tests.trace.darshan import writer
from tests.trace.darshan.writer import INIT, table, write

DATA = Path(__file__).parents[2] / "data" / "traces"
MIB = 1 << 20
MINE = 0x9E3779B97F4A7C15
"""A record id that needs all of its 64 bits."""


def kinds(log: DarshanLog) -> list[str]:
    return [gap.kind for gap in log.gaps]


def posix(record: int = MINE, rank: int = 0, size: int = MIB, **more: object) -> bytes:
    counters = {"OPENS": 1, "WRITES": 1, "BYTES_WRITTEN": size, "MAX_BYTE_WRITTEN": size - 1}
    return table("POSIX", record, rank, **counters, **more)


def test_facts_of_the_job(tmp_path: Path) -> None:
    log = read(
        write(
            tmp_path / "x.darshan",
            {"POSIX": posix()},
            {MINE: b"/lustre/a\xff b"},
            ranks=6,
            command="/apps/bin/ior -w -b 1m",
        )
    )
    assert (log.ranks, log.uid, log.job_id, log.application) == (6, 1000, "4711", "ior")
    assert log.command == ("/apps/bin/ior", "-w", "-b", "1m") and log.version == "3.41"
    assert (log.start_s, log.run_time_s) == (1_700_000_000.25, 100.5)
    assert log.names == {MINE: "/lustre/a\udcff b"}
    mount = log.mount_of(log.names[MINE])
    assert mount is not None and mount.kind == "lustre" and mount.path == "/lustre"
    assert log.mount_of("/lustrex/a") is not mount


def test_counters_of_both_modules_are_accesses(tmp_path: Path) -> None:
    stdio = table("STDIO", MINE, 3, OPENS=2, READS=4, BYTES_READ=100, MAX_BYTE_READ=399, F_READ_TIME=0.5)
    ours = posix(F_WRITE_TIME=2.5, F_OPEN_START_TIMESTAMP=1.0, F_CLOSE_END_TIMESTAMP=9.0, MMAPS=1)
    log = read(write(tmp_path / "x.darshan", {"POSIX": ours, "STDIO": stdio}, {MINE: "/lustre/a"}, ranks=4))
    first, second = log.accesses
    assert (first["record"], first["rank"], first["stdio"], first["written_end_bytes"]) == (
        MINE,
        0,
        False,
        MIB,
    )
    assert (first["write_s"], first["open_start_s"], first["close_end_s"], first["mmaps"]) == (2.5, 1, 9, 1)
    assert (second["rank"], second["stdio"], second["read_bytes"], second["read_end_bytes"]) == (
        3,
        True,
        100,
        400,
    )
    assert second["read_s"] == 0.5 and second["written_end_bytes"] == 0
    assert log.modules["POSIX"].counters["POSIX_WRITES"].tolist() == [1]


def test_layouts_by_component(tmp_path: Path) -> None:
    pfl = [
        (MIB, 0, 2, INIT, 0, MIB, 0, ""),
        (MIB, 1, 0, INIT, MIB, 128 * MIB, 0, "flash"),
        (4 * MIB, 3, 4, INIT, 128 * MIB, -1, 0, ""),
    ]
    records = writer.layout_record(1, pfl, [7, 4, 5, 4]) + writer.plain(2, [9, 3], 65536)
    content = {"POSIX": posix(1, size=600 * MIB) + posix(2), "LUSTRE": records}
    log = read(write(tmp_path / "x.darshan", content, {1: "/lustre/a", 2: "/lustre/b"}))
    assert kinds(log) == []
    first = log.layouts[1]
    assert [c.pattern for c in first.layout] == ["mdt", "raid0", "overstriped"]
    assert [(c.start_bytes, c.end_bytes) for c in first.layout] == [
        (0, MIB),
        (MIB, 128 * MIB),
        (128 * MIB, EOF),
    ]
    assert first.osts == ((), (7,), (4, 5, 4)) and first.layout.components[1].pool == "flash"
    assert first.layout.composite and first.placed and first.known_bytes == EOF
    second = log.layouts[2]
    assert second.osts == ((9, 3),) and not second.layout.composite
    assert second.layout.components[0].stripe_size_bytes == 65536


def test_components_without_objects_are_told_where_bytes_may_be_in_them(tmp_path: Path) -> None:
    first = (MIB, 1, 0, INIT, 0, 128 * MIB, 0, "")
    unused = (-1, 0, 0, 0, 0, 0, 0, "")
    content = {
        "POSIX": posix(1, size=200 * MIB) + posix(2, size=128 * MIB),
        "LUSTRE": writer.layout_record(1, [first, unused], [5]) + writer.layout_record(2, [first], [6]),
    }
    log = read(write(tmp_path / "x.darshan", content, {1: "/lustre/a", 2: "/lustre/b"}))
    assert log.layouts[1].osts == ((5,),) and log.layouts[1].known_bytes == 128 * MIB
    assert kinds(log) == ["short-layout"] and log.gaps[0].records == (1,)


def test_many_osts_behind_components_that_were_cut_off(tmp_path: Path) -> None:
    """The C library moves the OSTs in such a record, and its own pointers do not follow."""
    wide = (MIB, 40, 0, INIT, 0, 128 * MIB, 0, "")
    unused = (-1, 0, 0, 0, 0, 0, 0, "")
    content = {"POSIX": posix(1), "LUSTRE": writer.layout_record(1, [wide, unused], range(100, 140))}
    log = read(write(tmp_path / "x.darshan", content, {1: "/lustre/a"}))
    assert log.layouts[1].osts == (tuple(range(100, 140)),)


@pytest.mark.parametrize("osts", [(), (4,)])
def test_fewer_osts_than_stripes_are_no_osts_and_the_next_record_is_read(
    tmp_path: Path, osts: tuple[int, ...]
) -> None:
    """The C library counts stripes by the components, and would give what is in memory behind the OSTs."""
    records = writer.layout_record(1, [(MIB, 2, 0, INIT, 0, -1, 0, "")], osts) + writer.plain(2, [7])
    content = {"POSIX": posix(1), "LUSTRE": records}
    log = read(write(tmp_path / "x.darshan", content, {1: "/lustre/a", 2: "/lustre/b"}))
    assert log.layouts[1].osts == (osts,) and log.gap("no-osts")
    assert log.layouts[2].osts == ((7,),)


def test_a_record_that_claims_more_stripes_than_the_log_has(tmp_path: Path) -> None:
    record = bytearray(writer.plain(1, [5]))
    record[24:32] = (1 << 40).to_bytes(8, "little")
    path = write(tmp_path / "x.darshan", {"POSIX": posix(1), "LUSTRE": bytes(record)}, {1: "/lustre/a"})
    with pytest.raises(TraceError, match="whole records of LUSTRE"):
        read(path)


def test_layouts_of_older_logs_have_no_pool(tmp_path: Path) -> None:
    """The C library converts them, and leaves in the pool what was in memory."""
    many = b"".join(writer.old_layout_record(i, MIB, [i % 7]) for i in range(1, 200))
    content = {"POSIX": b"".join(posix(i) for i in range(1, 200)), "LUSTRE": many}
    names = {i: f"/lustre/{'x' * (i % 90)}{i}" for i in range(1, 200)}
    log = read(write(tmp_path / "x.darshan", content, names, versions={"LUSTRE": 1}))
    assert {c.pool for of in log.layouts.values() for c in of.layout} == {""}
    assert len({of.layout for of in log.layouts.values()}) == 1


def test_layouts_of_older_logs(tmp_path: Path) -> None:
    records = (
        writer.old_layout_record(1, MIB, [3, 5])
        + writer.old_layout_record(2, MIB, [-1])
        + writer.old_layout_record(3, 77, [1])
        + writer.old_layout_record(4, MIB, [])
    )
    content = {"POSIX": b"".join(posix(i) for i in range(1, 6)), "LUSTRE": records}
    names = {i: f"/lustre/{chr(96 + i)}" for i in range(1, 6)}
    log = read(write(tmp_path / "x.darshan", content, names, versions={"LUSTRE": 1}))
    assert log.layouts[1].osts == ((3, 5),) and log.layouts[1].layout.components[0].end_bytes == EOF
    assert log.layouts[2].osts == ((),) and not log.layouts[2].placed
    found = {gap.kind: gap.records for gap in log.gaps}
    assert found == {"no-osts": (2,), "odd-layout": (3, 4), "no-layout": (5,)}


def test_of_mirrors_the_first_that_is_not_stale(tmp_path: Path) -> None:
    stale = (MIB, 1, 0, INIT | 1, 0, -1, 1, "flash")
    fresh = (MIB, 2, 0, INIT, 0, -1, 2, "disk")
    content = {"POSIX": posix(1), "LUSTRE": writer.layout_record(1, [stale, fresh], [9, 3, 4])}
    log = read(write(tmp_path / "x.darshan", content, {1: "/lustre/a"}))
    assert log.layouts[1].osts == ((3, 4),) and log.layouts[1].mirrors == 2
    assert kinds(log) == ["mirrored"]


def test_of_ranks_that_saw_a_layout_the_one_that_saw_more(tmp_path: Path) -> None:
    early = [(MIB, 1, 0, INIT, 0, 128 * MIB, 0, "")]
    late = [*early, (MIB, 2, 0, INIT, 128 * MIB, -1, 0, "")]
    records = [
        writer.layout_record(1, comps, osts, rank)
        for comps, osts, rank in ((early, [5], 0), (late, [5, 6, 7], 1), (early, [5], 2))
    ]
    content = {"POSIX": posix(1), "LUSTRE": b"".join(records)}
    assert read(write(tmp_path / "x.darshan", content, {1: "/lustre/a"})).layouts[1].osts == ((5,), (6, 7))


def test_trace(tmp_path: Path) -> None:
    trace = writer.trace_record(1, 2, [(0, 10, 5.0, 6.0), (10, 10, 1.0, 2.0)], [(4, 2, 3.0, 4.0)])
    content = {"POSIX": posix(1, -1), "DXT_POSIX": trace + writer.trace_record(1, 0, [], [(0, 1, 9.0, 9.5)])}
    log = read(write(tmp_path / "x.darshan", content, {1: "/lustre/a"}, ranks=4))
    found = segments(log)
    assert found["rank"].tolist() == [0, 2, 2, 2] and found["start_s"].tolist() == [9, 1, 3, 5]
    assert found["write"].tolist() == [False, True, False, True]
    assert found["offset"].tolist() == [0, 10, 4, 0] and found["bytes"].tolist() == [1, 10, 2, 10]
    shared = log.gap("shared")
    assert shared is not None and shared.text.endswith("but the trace (DXT) has it")
    assert len(segments(read(DATA / "series_ckpt_0_b2048k.darshan"))) == 0


GAP_LOGS: dict[str, tuple[dict[str, bytes], dict[int, str], dict[str, object]]] = {
    "no-io": ({"MPI-IO": table("MPI-IO", 1, 0, INDEP_OPENS=1)}, {1: "/lustre/a"}, {}),
    "partial": ({"POSIX": posix(1)}, {1: "/lustre/a"}, {"partial": ["POSIX"]}),
    "unended": ({"POSIX": posix(1)}, {1: "/lustre/a"}, {"end_s": (0, 0)}),
    "no-lustre": ({"POSIX": posix(1)}, {1: "/lustre/a"}, {}),
    "no-layout": (
        {"POSIX": posix(1) + posix(2), "LUSTRE": writer.plain(1, [1])},
        {1: "/lustre/a", 2: "/lustre/b"},
        {},
    ),
    "odd-layout": (
        {"POSIX": posix(1), "LUSTRE": writer.layout_record(1, [(MIB, 1, 8, 0, 0, -1, 0, "")], [1])},
        {1: "/lustre/a"},
        {},
    ),
    "shared": ({"POSIX": posix(1, -1)}, {1: "/lustre/a"}, {"ranks": 2}),
    "mmap": ({"POSIX": table("POSIX", 1, 0, OPENS=1, MMAPS=1)}, {1: "/lustre/a"}, {}),
    "stdio-only": ({"STDIO": table("STDIO", 1, 0, OPENS=1, BYTES_WRITTEN=5)}, {1: "/lustre/a"}, {}),
    "no-bytes": ({"POSIX": table("POSIX", 1, 0, OPENS=1)}, {1: "/lustre/a"}, {}),
    "no-name": ({"POSIX": posix(1) + posix(2)}, {1: "/lustre/a"}, {}),
    "anonymised": ({"POSIX": posix(1) + posix(2)}, {1: "/lustre/123456789", 2: "987654321"}, {}),
}
"""Gap → a log that has it (records, names, what else `write` is given)."""


@pytest.mark.parametrize("kind", GAP_LOGS)
def test_what_a_log_cannot_tell(tmp_path: Path, kind: str) -> None:
    modules, names, more = GAP_LOGS[kind]
    log = read(write(tmp_path / "x.darshan", modules, names, **more))  # type: ignore[arg-type]
    gap = log.gap(kind)
    assert gap is not None, kinds(log)
    assert GAPS[kind] in gap.text and "\n" not in gap.text
    unexpected = set(kinds(log)) - {kind, "no-lustre", "no-bytes"}
    assert not unexpected


def test_nothing_is_amiss_where_nothing_is_amiss(tmp_path: Path) -> None:
    content = {
        "POSIX": posix(1) + posix(2),
        "STDIO": table("STDIO", 3, 0, OPENS=1, BYTES_WRITTEN=9),
        "LUSTRE": writer.plain(1, [1]),
    }
    names = {1: "/lustre/1234567", 2: "/tmp/12a", 3: "<STDOUT>"}
    assert read(write(tmp_path / "x.darshan", content, names)).gaps == ()


def test_a_newer_format_of_records_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "x.darshan", {"POSIX": posix()}, {MINE: "/a"}, versions={"POSIX": 99})
    with pytest.raises(TraceError, match=r"x\.darshan: expected records of POSIX .* found 'version 99'"):
        read(path)


SAMPLE = resources("darshan").joinpath("tests/input/sample-goodost.darshan").read_bytes()


@pytest.mark.parametrize("length", [0, 7, 300, len(SAMPLE) // 2, len(SAMPLE) - 1])
def test_a_log_that_was_cut_off_is_one_line(tmp_path: Path, length: int) -> None:
    path = tmp_path / "x.darshan"
    path.write_bytes(SAMPLE[:length])
    with pytest.raises(TraceError, match=r"x\.darshan: expected a Darshan log.*, found"):
        read(path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_whole_log_with_times_that_cannot_be_is_one_line(tmp_path: Path, value: float) -> None:
    path = write(tmp_path / "x.darshan", {"POSIX": posix(F_CLOSE_END_TIMESTAMP=value)}, {MINE: "/lustre/a"})
    with pytest.raises(TraceError, match="close_end_s"):
        read(path)


def test_a_log_that_says_another_compression_than_it_has_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.darshan"
    path.write_bytes(SAMPLE[:16] + b"\1" + SAMPLE[17:])
    with pytest.raises(TraceError, match="expected a Darshan log that is whole, found 'Invalid data stream"):
        read(path)


def test_a_changed_byte_is_found_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "x.darshan"
    refused = 0
    for at in range(360, len(SAMPLE), 97):
        path.write_bytes(SAMPLE[:at] + bytes([SAMPLE[at] ^ 0x10]) + SAMPLE[at + 1 :])
        try:
            read(path)
        except TraceError:
            refused += 1
    assert refused > 50


def test_the_log_of_the_sick_ost() -> None:
    sample = resources("darshan").joinpath("tests/input/sample-badost.darshan")
    log = read(Path(str(sample)))
    assert len(log.layouts) == 2048 and {len(of.osts) for of in log.layouts.values()} == {1}
    assert len({of.osts[0] for of in log.layouts.values()}) == 24
    assert len({id(of.layout) for of in log.layouts.values()}) == 1, "equal layouts are one object"
    assert log.accesses["written_bytes"].sum() == pytest.approx(2048 * 256 * MIB, rel=1e-6)
    assert (log.ranks, log.version, log.run_time_s) == (2048, "3.10", 780)


@pytest.mark.long
def test_many_ranks_in_seconds(tmp_path: Path) -> None:
    """65,536 ranks, a file each with its layout."""
    number = 65536
    records = np.arange(1, number + 1, dtype=np.uint64) * np.uint64(MINE)
    ids = records.tolist()
    content = {
        "POSIX": table(
            "POSIX", records, np.arange(number), OPENS=1, BYTES_WRITTEN=MIB, MAX_BYTE_WRITTEN=MIB - 1
        ),
        "LUSTRE": writer.plains(records, np.arange(number) % 1000),
    }
    path = write(
        tmp_path / "x.darshan", content, {i: f"/lustre/f.{n}" for n, i in enumerate(ids)}, ranks=number
    )
    start_s = time.process_time()
    log = read(path)
    assert time.process_time() - start_s < 15
    assert len(log.accesses) == len(log.layouts) == number and log.gaps == ()
    assert log.accesses["rank"].tolist() == list(range(number))
    assert [log.layouts[i].osts for i in ids[:3]] == [((0,),), ((1,),), ((2,),)]


def test_gaps_are_in_the_order_of_their_list() -> None:
    log = read(DATA / "ior_posix_fpp_n8_i6_m_partial.darshan")
    assert log.partial and kinds(log)[:2] == ["partial", "no-lustre"]
    assert all(isinstance(gap, Gap) for gap in log.gaps)
