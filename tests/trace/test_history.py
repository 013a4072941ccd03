from __future__ import annotations

import contextlib
import io
import os
import stat
import string
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.errors import TraceError
from tarazu.model import JobStep
from tarazu.trace.history import History, file_name, opened
from tarazu.trace.past import read_past
from tarazu.trace.records import FOUND, OUTCOMES, FileRecord, RunRecord
from tarazu.trace.runfile import encode_run, read_run
from tarazu.trace.table import COLUMNS, read_rows, to_csv
from tests.trace.conftest import decoded

FIXED = settings(deadline=None, max_examples=60, derandomize=True)

NAMES = st.one_of(
    st.text(string.ascii_letters + string.digits + "/._-,\"'\n\r {}#äé€", max_size=30),
    st.binary(max_size=8).map(lambda raw: raw.replace(b"\0", b"").decode("utf-8", "surrogateescape")),
)
SIZES = st.integers(0, 2**63 - 1)
FILES = st.builds(
    FileRecord,
    key=NAMES.map(lambda n: "/" + n),
    precise=NAMES,
    loose=NAMES,
    rank=st.integers(-1, 10**6),
    creators=st.sets(st.integers(0, 100)).map(lambda s: tuple(sorted(s))),
    nth_precise=st.integers(0, 2**32 - 1),
    nth_loose=st.integers(0, 2**32 - 1),
    at_s=st.floats(0, 1e9, allow_nan=False),
    size_bytes=SIZES,
    written_bytes=SIZES,
    writers=st.integers(0, 10**6),
    contiguous=st.booleans(),
    counted=st.booleans(),
    closed=st.booleans(),
    existed=st.booleans(),
    outcome=st.sampled_from(OUTCOMES),
    found=st.sampled_from(FOUND),
    errno=st.integers(0, 200),
    row_id=st.integers(0, 2**32 - 1),
    generation=st.integers(0, 2**63),
    layout=st.binary(max_size=20),
)
RUNS = st.builds(
    RunRecord,
    step=st.builds(
        JobStep,
        fs_name=NAMES,
        uid=st.integers(0, 2**31),
        application=NAMES,
        job_id=NAMES,
        numbers=st.lists(st.floats(-1e18, 1e18), max_size=3).map(tuple),
    ),
    start_s=st.floats(0, 4e9, allow_nan=False),
    duration_s=st.floats(0, 1e6),
    mode=st.sampled_from(["full", "light"]),
    files=st.lists(FILES, max_size=4).map(tuple),
    ranks_seen=st.integers(0, 10),
    partial=st.booleans(),
    source=st.sampled_from(["recorder", "darshan"]),
)


def sample(start_s: float = 1e9, application: str = "ior", fs_name: str = "lustre") -> RunRecord:
    file = FileRecord("/a/f.0", "/a/f.{rank}", "/a/f.#", 0, (0,), 0, 0, 1.5, 4096)
    return RunRecord(JobStep(fs_name, 0, application, "17"), start_s, 10.0, "full", (file,), 1, 1)


@FIXED
@given(st.lists(FILES, max_size=5))
def test_csv_round_trip(files: list[FileRecord]) -> None:
    assert list(read_rows(io.StringIO(to_csv(files), newline=""), "t.csv")) == files


@FIXED
@given(RUNS)
def test_run_round_trip(run: RunRecord) -> None:
    assert decoded(encode_run(run)) == run


@FIXED
@given(RUNS)
def test_history_round_trip_under_any_name(run: RunRecord) -> None:
    with tempfile.TemporaryDirectory() as directory:
        history = History(directory)
        path = history.append(run)
        assert path.parent.parent.parent == Path(directory)
        assert history.runs(run.step.fs_name, run.step.application) == [run]
        assert history.applications() == [(run.step.fs_name, run.step.application)]


@FIXED
@given(st.binary(max_size=200), st.integers(0, 400))
def test_any_damage_to_a_run_is_a_trace_error_or_another_run(noise: bytes, at: int) -> None:
    data = encode_run(sample())
    damaged = data[:at] + noise + data[at + len(noise) :]
    try:
        assert isinstance(decoded(damaged), RunRecord)
    except TraceError as error:
        assert str(error).startswith("descriptor ") and "\n" not in str(error)


def test_the_csv_is_readable_and_names_line_and_problem() -> None:
    text = to_csv(sample().files)
    assert text.splitlines()[0] == ",".join(COLUMNS)
    assert text.splitlines()[1].startswith("/a/f.0,/a/f.{rank},/a/f.#,0,0,0,0,1.5,4096,")
    for old, new, expected in (
        ("4096", "-1", "t.csv:2: size_bytes: expected a whole number, 0 to"),
        ("unmanaged", "great", "t.csv:2: outcome: expected one of unmanaged, hit"),
        (",1.5,", ",nan,", "t.csv:2: at_s: expected a number, 0 to 1e+09, found 'nan'"),
        ("/a/f.0", "a/f.0", "t.csv:2: key: expected a path from /"),
        (
            ",0,0,0,0,1.5",
            ",0,0,0,18446744073709551616,1.5",
            "t.csv:2: nth_loose: expected a whole number, 0 to 18",
        ),
        (",0,0,0,0,1.5", ",0,3-1,0,0,1.5", "t.csv:2: creators: expected a file of a run"),
        ("precise", "exact", "t.csv:1: expected the columns"),
        (",1.5,", ",1.5,7,", "t.csv:2: expected 22 columns"),
    ):
        with pytest.raises(TraceError) as caught:
            list(read_rows(io.StringIO(text.replace(old, new), newline=""), "t.csv"))
        assert str(caught.value).startswith(expected)


def test_files_are_private_and_whole(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        path = History(tmp_path / "state" / "tarazu").append(sample())
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (path.parent, path.parent.parent, tmp_path / "state" / "tarazu"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [p.name for p in path.parent.iterdir()] == [path.name], "no temporary file stays"
    assert path.name.startswith("20010909T014640.000000-")


def test_last_runs_come_oldest_first(tmp_path: Path) -> None:
    history = History(tmp_path)
    for start in (3e9, 1e9, 2e9):
        history.append(sample(start))
    assert [r.start_s for r in history.runs("lustre", "ior")] == [1e9, 2e9, 3e9]
    assert [r.start_s for r in history.runs("lustre", "ior", last=2)] == [2e9, 3e9]
    assert history.runs("lustre", "other") == [] and history.runs("home", "ior") == []


def test_unusable_files_are_skipped_reported_and_replaced_by_older_ones(tmp_path: Path) -> None:
    history = History(tmp_path)
    paths = [history.append(sample(s)) for s in (1e9, 2e9, 3e9)]
    text = paths[2].read_text()
    paths[2].write_text(text.replace('"files": 1', '"files": 2'))
    (paths[2].parent / "20300101T000000.000000-x.run").write_bytes(b"\xff\x00 nothing")
    (paths[2].parent / ".hidden.run").write_text("")
    reported: list[TraceError] = []
    found = history.runs("lustre", "ior", last=2, problem=reported.append)
    assert [r.start_s for r in found] == [1e9, 2e9]
    assert len(reported) == 2 and "expected 2 files" in str(reported[0])
    with pytest.raises(TraceError, match="expected 2 files"):
        history.runs("lustre", "ior", strict=True)


@pytest.mark.parametrize(
    "header",
    ["", "[1]", '{"format": "other"}', '{"format": "tarazu-run", "version": 2, "files": 0}', "[" * 100_000],
)
def test_headers_that_are_not_ours_are_refused(tmp_path: Path, header: str) -> None:
    path = tmp_path / "a.run"
    path.write_text(header + "\n" + to_csv(()))
    with pytest.raises(TraceError, match=r"a\.run:1"):
        read_run(path)


def test_a_history_of_fifos_and_devices_neither_waits_nor_fails(tmp_path: Path) -> None:
    history = History(tmp_path)
    folder = history.append(sample()).parent
    os.mkfifo(folder / "20300101T000000.000000-a.run")
    (folder / "20300101T000000.000000-b.run").symlink_to("/dev/zero")
    (folder / "20300101T000000.000000-c.run").symlink_to("nowhere")
    reported: list[TraceError] = []
    assert len(history.runs("lustre", "ior", problem=reported.append)) == 1 and len(reported) == 3
    with contextlib.ExitStack() as stack:
        files = [opened(path) for path in history.paths("lustre", "ior")]
        past, problems = read_past([stack.enter_context(file).fileno() for file in files if file], 4)
    assert len(past) == 1 and len(problems) == 2
    recorded, problems = history.recorded("lustre", "ior", 4)
    assert len(recorded) == 1 and len(problems) == 3
    assert history.applications() == [("lustre", "ior")]


def test_header_with_a_wrong_type_is_refused() -> None:
    data = encode_run(sample()).replace(b'"start_s": 1000000000.0', b'"start_s": "noon"')
    with pytest.raises(TraceError, match="header of a run"):
        decoded(data)


def test_history_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match="can be written to"):
        History(tmp_path / "file").append(sample())


def test_application_names_cannot_leave_the_directory() -> None:
    assert file_name("../../etc/passwd") == "%2E.%2F..%2Fetc%2Fpasswd"
    assert file_name("..") == "%2E." and file_name("") == "%"
    assert file_name("ior-4.0_x+y") == "ior-4.0_x+y"
    long = file_name("x" * 1000)
    assert len(long) < 150 and long != file_name("x" * 999)


def test_complete_and_outcomes() -> None:
    run = sample()
    assert run.complete and run.outcomes == {"unmanaged": 1}
    for change in ({"exit_status": 1}, {"partial": True}, {"lost_bytes": 1}, {"ranks_expected": 2}):
        assert not msgspec.structs.replace(run, **change).complete


def test_run_from_an_open_descriptor(tmp_path: Path) -> None:
    path = History(tmp_path).append(sample())
    descriptor = os.open(path, os.O_RDONLY)
    assert read_run(descriptor) == sample()
    with pytest.raises(OSError):
        os.fstat(descriptor)
    with pytest.raises(TraceError, match=f"descriptor {descriptor}: expected a readable run"):
        read_run(descriptor)
