"""Histories as a forecast reads them: within limits, whatever the descriptors are."""

from __future__ import annotations

import os
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import LayoutError
from tarazu.model import JobStep
from tarazu.native import decode_lov, without_identity
from tarazu.trace import runfile
from tarazu.trace.past import HistoryLimits, read_past
from tarazu.trace.records import FileRecord, PastRun, RunRecord
from tarazu.trace.runfile import encode_run
from tests.trace.conftest import decoded


def run(number: int, files: int = 3, **fields: object) -> RunRecord:
    record = FileRecord("/f", "/d/f.{rank}", "/d/f.#", 0, (0,), 0, 0, 1.0, 100)
    made = tuple(
        msgspec.structs.replace(record, key=f"/d/f.{r}", rank=r, creators=(r,), size_bytes=100 + r, **fields)
        for r in range(files)
    )
    return RunRecord(JobStep("lustre", 0, "app", str(number)), 1e9 + number, 9.0, "full", made, files, files)


class Opened:
    """Run files as descriptors."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.descriptors: list[int] = []

    def add(self, content: bytes | RunRecord) -> Path:
        path = self.directory / f"{len(self.descriptors)}.run"
        path.write_bytes(content if isinstance(content, bytes) else encode_run(content))
        self.descriptors.append(os.open(path, os.O_RDONLY))
        return path


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    found = Opened(tmp_path)
    yield found
    for descriptor in found.descriptors:
        os.close(descriptor)


def test_what_a_forecast_looks_at_is_what_the_run_holds(opened: Opened) -> None:
    whole = run(1, outcome="hit", counted=True, writers=2, contiguous=True)
    opened.add(whole)
    (past,), problems = read_past(opened.descriptors, 10)
    assert problems == [] and past.outcomes == whole.outcomes == {"hit": 3} and past.step == whole.step
    for name in ("key", "precise", "loose", "rank", "creator", "creator_count", "nth_precise", "nth_loose",
                 "at_s", "size_bytes", "writers", "closed", "counted", "contiguous", "shared"):  # fmt: skip
        assert [getattr(f, name) for f in past.files] == [getattr(f, name) for f in whole.files], name


def test_reading_leaves_the_senders_offset_alone_and_does_not_need_it_at_the_start(opened: Opened) -> None:
    opened.add(run(1))
    os.lseek(opened.descriptors[0], 50, os.SEEK_SET)
    assert len(read_past(opened.descriptors, 1)[0]) == 1
    assert os.lseek(opened.descriptors[0], 0, os.SEEK_CUR) == 50


def test_the_oldest_histories_go_first_when_all_are_too_large_together_and_it_is_said(
    opened: Opened,
) -> None:
    sizes = [opened.add(run(n, 100)).stat().st_size for n in range(5)]
    for limits in (HistoryLimits(total_bytes=sizes[0] * 7 // 2), HistoryLimits(files=350)):
        found, problems = read_past(opened.descriptors, 5, limits)
        assert [r.step.job_id for r in found] == ["2", "3", "4"]
        assert len(problems) == 1 and problems[0].startswith("history left out: 2 older runs")


def test_a_history_that_grows_while_it_is_read_ends_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runfile, "MAX_RUN_BYTES", 1 << 20)
    path = tmp_path / "grows.run"
    text = encode_run(run(1, 3)).decode()
    path.write_text(text.replace('"files": 3', '"files": 1000000000'))
    row = text.splitlines(keepends=True)[-1].encode() * 1000
    stop = threading.Event()

    def grow() -> None:
        with path.open("ab") as file:
            while not stop.is_set() and file.tell() < 200 << 20:
                file.write(row)
                file.flush()

    thread = threading.Thread(target=grow)
    with path.open("rb") as file:
        reading = runfile.reader(os.dup(file.fileno()), 1 << 20)
        assert reading.read(10)
        thread.start()
        while path.stat().st_size < 2 << 20:
            time.sleep(0.001)
        try:
            with pytest.raises(
                runfile.TooLarge, match="expected a file of at most 1048576 bytes, found 'more'"
            ):
                for _ in iter(lambda: reading.read(4096), ""):
                    time.sleep(0.0001)
        finally:
            stop.set()
            thread.join()
            reading.close()


@pytest.mark.parametrize("kind", ["fifo", "zero", "directory"])
def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path = Path("/dev/zero")
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found, problems = read_past([descriptor], 1)
    finally:
        os.close(descriptor)
    assert found == [] and str(path) in problems[0] and "no regular file" in problems[0]


@settings(deadline=None, max_examples=150, derandomize=True)
@given(st.binary(max_size=60), st.integers(0, 900), st.booleans())
def test_any_damage_is_a_problem_or_another_run(noise: bytes, at: int, cut: bool) -> None:
    data = encode_run(run(1))
    damaged = data[:at] + noise + (b"" if cut else data[at + len(noise) :])
    descriptor = os.memfd_create("run")
    try:
        os.write(descriptor, damaged)
        found, problems = read_past([descriptor], 1)
    finally:
        os.close(descriptor)
    assert len(found) + len(problems) == 1
    assert all(isinstance(r, PastRun) for r in found)


def test_ranks_of_ten_thousand_writers_are_not_unfolded_for_a_forecast(opened: Opened) -> None:
    """100,000 files, each created by all but a few of 16 million ranks: 13 bytes a file."""
    lines = encode_run(run(1, 1)).decode().splitlines(keepends=True)
    files = 20_000
    rows = [lines[2].replace(",0,0,0,0,1.0,", f",-1,0-{8_000_000 + i},0,{i},1.0,") for i in range(files)]
    opened.add((lines[0].replace('"files": 1', f'"files": {files}') + lines[1] + "".join(rows)).encode())
    tracemalloc.start()
    try:
        (past,), problems = read_past(opened.descriptors, 1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert problems == [] and past.files[-1].creator_count == 8_000_000 + files
    assert peak < 60 << 20


def test_ranks_unfolded_for_a_whole_run_are_bounded_in_all(opened: Opened) -> None:
    lines = encode_run(run(1, 1)).decode().splitlines(keepends=True)
    rows = [lines[2].replace(",0,0,0,0,1.0,", f",-1,0-{1_000_000 + i},0,{i},1.0,") for i in range(50)]
    text = lines[0].replace('"files": 1', '"files": 50') + lines[1] + "".join(rows)
    with pytest.raises(runfile.TraceError, match=r"at most \d+ numbers"):
        decoded(text.encode())
    same = lines[0].replace('"files": 1', '"files": 50') + lines[1] + rows[0] * 50
    files = decoded(same.encode()).files
    assert len(files) == 50 and {len(f.creators) for f in files} == {1_000_001}, "equal lists count once"


@pytest.mark.parametrize(
    ("column", "value"),
    [("size_bytes", "9" * 30), ("size_bytes", str(2**63)), ("size_bytes", "9" * 5000), ("at_s", "1e300"),
     ("at_s", "nan"), ("rank", str(2**40)), ("nth_loose", "-1"), ("writers", str(2**31)), ("key", "x")],
)  # fmt: skip
def test_numbers_that_cannot_be_leave_the_run_out(opened: Opened, column: str, value: str) -> None:
    from tarazu.trace.table import COLUMNS

    lines = encode_run(run(1, 1)).decode().splitlines()
    row = lines[2].split(",")
    row[COLUMNS.index(column)] = value
    opened.add("\n".join([*lines[:2], ",".join(row), ""]).encode())
    found, problems = read_past(opened.descriptors, 1)
    assert found == [] and len(problems) == 1 and ":3: expected a file of a run" in problems[0]


@pytest.mark.parametrize(
    "change", [('"ranks": 1', '"ranks": 2147483648'), ('"numbers": []', '"numbers": [1e999]')]
)
def test_steps_that_cannot_be_leave_the_run_out(opened: Opened, change: tuple[str, str]) -> None:
    step = JobStep("lustre", 0, "app", "1", ranks=1)
    text = encode_run(msgspec.structs.replace(run(1), step=step)).decode()
    text = text.replace('"application": "app"', '"application": "app", "ranks": 1, "numbers": []')
    assert change[0] in text
    opened.add(text.replace(*change).encode())
    found, problems = read_past(opened.descriptors, 1)
    assert found == [] and "the header of a run" in problems[0]


def lov(first_id: int, osts: tuple[int, ...]) -> bytes:
    """A composite layout of one component, as Lustre returns it: object ids differ in every file."""
    import struct

    objects = b"".join(struct.pack("<QQII", first_id + i, 7, first_id, ost) for i, ost in enumerate(osts))
    md = struct.pack("<IIQQIHH", 0x0BD10BD0, 1, first_id, 9, 1 << 20, len(osts), 0) + objects
    entry = struct.pack("<IIQQIIIQ4x", 1, 16, 0, 2**64 - 1, 80, len(md), 0, 0)
    return struct.pack("<IIIHHH14x", 0x0BD60BD0, 80 + len(md), first_id, 0, 1, 0) + entry + md


def placement(blob: bytes) -> list[tuple[int, ...]]:
    return [c.osts for c in decode_lov(blob).components]


def test_a_placed_history_is_as_large_as_an_observed_one() -> None:
    """Layouts as read back were written into each row: 24 stripes made a row four times as long."""
    observed = run(1, 20_000)
    placed = tuple(
        msgspec.structs.replace(f, layout=lov(1000 * i, tuple((i + s) % 35 for s in range(24))))
        for i, f in enumerate(observed.files)
    )
    data = encode_run(msgspec.structs.replace(observed, files=placed))
    assert len(data) < 1.2 * len(encode_run(observed))
    back = decoded(data)
    assert len({f.layout for f in back.files}) == 35
    assert placement(back.files[7].layout) == placement(placed[7].layout)


CAPTURED = Path(__file__).parents[1] / "data" / "lustre" / "layout"


@pytest.mark.parametrize("path", sorted(CAPTURED.glob("*.lustre.lov.bin")), ids=lambda p: p.name)
def test_a_layout_without_its_identity_is_the_same_layout(path: Path) -> None:
    blob = path.read_bytes()
    plain = without_identity(blob)
    assert len(plain) == len(blob) and without_identity(plain) == plain
    try:
        before = decode_lov(blob)
    except LayoutError:
        return  # of a kind that is never placed
    assert decode_lov(plain).layout() == before.layout() and placement(plain) == placement(blob)


def test_layouts_that_are_all_different_are_kept_up_to_a_limit() -> None:
    observed = run(1, 10_000)
    placed = tuple(
        msgspec.structs.replace(f, layout=lov(1, (i % 100, i // 100))) for i, f in enumerate(observed.files)
    )
    data = encode_run(msgspec.structs.replace(observed, files=placed))
    assert len(data) < len(encode_run(observed)) + (3 << 20)
    assert sum(bool(f.layout) for f in decoded(data).files) == runfile.MOST_LAYOUTS
