"""Spools that grow and change are followed: what was read bit by bit is what a reader of the whole sees."""

from __future__ import annotations

import os
import struct
import threading
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.model import JobStep
from tarazu.run.watch import SpoolWatch
from tarazu.trace import follow
from tarazu.trace.follow import EndedSpools, LiveSpool
from tests.trace.conftest import START_NS, close_record, create_record, end_record, spool

STEP = JobStep("lustre", os.getuid(), "app", "1")


class Recorder:
    """What preload/record/spool.c does with one file: records are added, or changed where they are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: list[bytes] = []
        self.at: dict[tuple[str, str], int] = {}
        self.changes = 0
        self.now = 1.0

    def _put(self, kind: str, key: str, record: bytes) -> None:
        self.changes += 1
        where = self.at.get((kind, key))
        if where is None:
            self.at[kind, key] = len(self.records)
            self.records.append(record)
        elif kind == "create":  # keeps the first one's time
            self.records[where] = record[:8] + self.records[where][8:16] + record[16:]
        else:
            self.records[where] = record

    def create(self, key: str, row_id: int) -> None:
        self.now += 1
        self._put("create", key, create_record(key, key, key, row_id=row_id, at_s=self.now))
        if ("close", key) in self.at:
            n = self.at["close", key]
            self.records[n] = self.records[n][:8] + bytes(8) + self.records[n][16:]

    def close(self, key: str, size: int) -> None:
        if ("create", key) in self.at:
            self.now += 1
            self._put("close", key, close_record(key, size, at_s=self.now))

    def write(self) -> None:
        data = bytearray(spool(self.records, rank=-1, ranks=0))
        data[248:256] = struct.pack("<Q", self.changes)
        self.path.write_bytes(data)


operations = st.lists(
    st.tuples(st.sampled_from(["create", "close", "look"]), st.integers(0, 40), st.integers(0, 9)),
    max_size=120,
)


@settings(max_examples=60, deadline=None)
@given(operations)
def test_what_is_followed_is_what_a_new_look_sees(
    tmp_path_factory: object, steps: list[tuple[str, int, int]]
) -> None:
    directory = tmp_path_factory.mktemp("follow")  # type: ignore[attr-defined]
    recorder = Recorder(directory / "n1.100.1.tzs")
    watch = SpoolWatch(str(directory), directory, STEP, threading.Event())
    files: dict[int, int | None] = {}
    for what, number, size in [*steps, ("look", 0, 0), ("look", 0, 0)]:
        key = f"/run/{'long' * 20}.{number}"
        if what == "create":
            recorder.create(key, number + 1)
        elif what == "close":
            recorder.close(key, size)
        else:
            recorder.write()
            files |= watch.look().files
    fresh = SpoolWatch(str(directory), directory, STEP, threading.Event())
    seen, again = fresh.look(), fresh.look()
    now = seen.files | again.files
    assert {row: files.get(row) for row in now} == now, "what is empty at last is not told anew"
    assert {fs: dict(run.outcomes) for fs, run in watch.runs().items()} == seen.outcomes or not seen.outcomes


def test_a_spool_that_only_grew_is_read_from_where_it_ended(tmp_path: Path, monkeypatch: object) -> None:
    recorder = Recorder(tmp_path / "n1.100.1.tzs")
    live = LiveSpool()
    read: list[tuple[int, int]] = []
    pread = os.pread

    def noted(descriptor: int, count: int, offset: int) -> bytes:
        read.append((offset, count))
        return pread(descriptor, count, offset)

    monkeypatch.setattr(follow.os, "pread", noted)  # type: ignore[attr-defined]
    for n in range(3):
        for i in range(100):
            recorder.create(f"/{n}.{i}", 1)
            recorder.close(f"/{n}.{i}", 5)
        recorder.write()
        used = struct.unpack_from("<Q", recorder.path.read_bytes(), 16)[0]
        before, read[:] = used, []
        with recorder.path.open("rb") as file:
            (process,) = live.update(file.fileno(), used, recorder.changes)
        assert len(process.parts) == 100 * (n + 1)
        assert sum(count for _, count in read) <= before / (n + 1) + 256
    recorder.close("/1.50", 7)
    recorder.write()
    with recorder.path.open("rb") as file:
        process.touched.clear()
        live.update(file.fileno(), used, recorder.changes)
        assert process.parts[b"lustre/1.50"].size_bytes == 7
        recorder.close("/2.50", 8)
        recorder.write()
        process.touched.clear()
        live.update(file.fileno(), used, recorder.changes)
    assert process.parts[b"lustre/2.50"].size_bytes == 8
    assert process.touched == {b"lustre/2.50"}


def test_ended_processes_are_read_once_and_half_written_ones_later(tmp_path: Path) -> None:
    path = tmp_path / "n1.ended.tzs"

    def one(pid: int) -> bytes:
        records = [create_record(f"/{pid}", f"/{pid}", f"/{pid}"), close_record(f"/{pid}", 3), end_record()]
        data = spool(records, pid=pid, rank=0, start_ns=START_NS + pid)
        used = struct.unpack_from("<Q", data, 16)[0]
        return data[:used]

    ended = EndedSpools()
    first, second, third = one(1), one(2), one(3)
    path.write_bytes(first + second[:300])
    with path.open("rb") as file:
        found = ended.update(file.fileno(), path.stat().st_size, 1 << 20)
        assert [p.header.pid for p in found] == [1] and found[0].ended
        path.write_bytes(first + second[:300] + third)  # the second was killed while it wrote
        found = ended.update(file.fileno(), path.stat().st_size, 1 << 20)
        assert [p.header.pid for p in found] == [2, 3]
        assert found[1].parts[b"lustre/3"].size_bytes == 3
        assert ended.update(file.fileno(), path.stat().st_size, 1 << 20) == []
