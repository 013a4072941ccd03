"""A study ends the same whoever computed it, and however often it was interrupted."""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tarazu.errors import BadInput, Unavailable
from tarazu.sim.study import report, runner, scheduler, study
from tarazu.sim.study.cases import ScenarioCase, expand
from tarazu.sim.study.results import ScenarioRow, read
from tarazu.sim.study.runner import WorkerDied
from tarazu.sim.study.scenario import ScenarioFile, load


@pytest.fixture
def serial(small: ScenarioFile, tmp_path: Path) -> bytes:
    """The rows of one process."""
    done = study.run(small, tmp_path / "serial", jobs=1)
    assert (len(done.cases), done.computed, done.lost) == (12, 12, ())
    return (tmp_path / "serial" / "rows.jsonl").read_bytes()


def test_rows_are_the_same_bit_for_bit_on_processes_and_on_dask(
    small: ScenarioFile, serial: bytes, tmp_path: Path
) -> None:
    distributed = pytest.importorskip("distributed")
    done = study.run(small, tmp_path / "processes", jobs=2)
    assert done.computed == 12
    assert (tmp_path / "processes" / "rows.jsonl").read_bytes() == serial
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        local_directory=str(tmp_path),
    ) as local:
        done = study.run(small, tmp_path / "dask", scheduler=local.scheduler_address)
    assert done.computed == 12
    assert (tmp_path / "dask" / "rows.jsonl").read_bytes() == serial


def test_a_scheduler_that_is_not_there_is_told(
    small: ScenarioFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(scheduler, "CONNECT_S", 0.3)
    with pytest.raises(Unavailable, match=r"expected a Dask scheduler at tcp://127\.0\.0\.1:9"):
        study.run(small, tmp_path / "dask", scheduler="tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    "address", ["nonsense", "http://127.0.0.1:8786", "tcp://127.0.0.1", "tcp://127.0.0.1:0"]
)
def test_a_malformed_scheduler_address_is_refused_before_anything_is_done(
    small: ScenarioFile, tmp_path: Path, address: str
) -> None:
    with pytest.raises(BadInput, match=r"--scheduler: expected tcp://HOST:PORT or tls://HOST:PORT, found"):
        study.run(small, tmp_path / "dask", scheduler=address)
    assert not (tmp_path / "dask").exists()


@pytest.mark.parametrize("said", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.0 400 Bad Request\r\n\r\n"])
def test_a_study_ends_where_something_other_than_a_scheduler_listens(
    small: ScenarioFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(scheduler, "CONNECT_S", 0.3)
    kept = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    kept.append(server.accept()[0])
                    kept[-1].sendall(said)

        threading.Thread(target=serve, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(Unavailable, match="expected a Dask scheduler at"):
            study.run(small, tmp_path / "dask", scheduler=address)
        server.shutdown(socket.SHUT_RDWR)
    for connection in kept:
        connection.close()


def start(file: ScenarioFile, folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tarazu", "sim", "study", str(file.path), "--out", str(folder), *words]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def rows_within(folder: Path, least: int, process: subprocess.Popen[str]) -> None:
    path = folder / "rows.jsonl"
    end = time.monotonic() + 120
    while not path.exists() or path.read_bytes().count(b"\n") < least:
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.005)


@pytest.fixture
def long(tmp_path: Path) -> ScenarioFile:
    """So many cases that a study is interrupted long before its end."""
    from .conftest import SMALL

    path = tmp_path / "small.toml"
    path.write_text(SMALL.replace("seeds = 2", "seeds = 150").replace("[10, 20]", "[20]"))
    return load(path)


@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_study_ends_its_workers_and_goes_on_where_it_stopped(
    long: ScenarioFile, tmp_path: Path, ended_by: signal.Signals
) -> None:
    folder = tmp_path / "out"
    process = start(long, folder, "--jobs", "2")
    rows_within(folder, 6, process)
    if ended_by is signal.SIGINT:
        os.killpg(process.pid, signal.SIGINT)  # as the terminal does
    else:
        process.kill()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == (130 if ended_by is signal.SIGINT else -9)
    if ended_by is signal.SIGINT:
        assert "interrupted" in errors and "Traceback" not in errors, errors
    end = time.monotonic() + 120
    while session_members(process.pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not session_members(process.pid), "its workers end with it"
    before = (folder / "rows.jsonl").read_bytes()
    whole = before[: before.rfind(b"\n") + 1]
    had = whole.count(b"\n")
    assert 6 <= had < len(expand(long))
    # What was asked for is now less: the rest of a long study need not be waited for.
    fewer = load_with(long, "seeds = 150", "seeds = 4")
    done = study.run(fewer, folder, jobs=1)
    assert len(done.cases) == 12 and done.computed < 12
    study.run(fewer, tmp_path / "anew", jobs=1)
    assert (folder / "rows.jsonl").read_bytes() == (tmp_path / "anew" / "rows.jsonl").read_bytes()


def load_with(file: ScenarioFile, old: str, new: str) -> ScenarioFile:
    assert old in file.text
    file.path.write_text(file.text.replace(old, new))
    return load(file.path)


def session_members(session: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test_a_changed_scenario_computes_what_changed_and_keeps_the_old_rows(
    small: ScenarioFile, serial: bytes, tmp_path: Path
) -> None:
    folder = tmp_path / "serial"
    assert study.run(small, folder, jobs=1).computed == 0
    assert (folder / "rows.jsonl").read_bytes() == serial
    assert study.run(load_with(small, "[10, 20]", "[10, 15]"), folder, jobs=1).computed == 6
    assert {row.osts for row in read(folder / "rows.jsonl")} == {10, 15}
    assert {row.osts for row in read(folder / "earlier.jsonl")} == {20}
    assert study.run(load(small.path), folder, jobs=1, fresh=True).computed == 12


def test_two_studies_do_not_write_into_one_folder(small: ScenarioFile, tmp_path: Path) -> None:
    with study._alone(tmp_path), pytest.raises(Unavailable, match="expected no other study here"):
        study.run(small, tmp_path, jobs=1)


# Called in workers: by name, from this module.
def dies(marker: Path, case: ScenarioCase) -> list[ScenarioRow]:
    """Dies with the first seed, the first time only."""
    if case.seed == 0 and not (marker / case.id).exists():
        (marker / case.id).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return []


def always_dies(marker: Path, case: ScenarioCase) -> list[ScenarioRow]:
    if case.seed == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return []


@pytest.mark.parametrize("how", [dies, always_dies])
def test_a_case_whose_worker_dies_is_repeated_once_and_harms_no_other(
    small: ScenarioFile,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: Callable[[Path, ScenarioCase], list[ScenarioRow]],
) -> None:
    monkeypatch.setattr(runner, "compute", partial(how, tmp_path))
    told: list[str] = []
    cases = expand(small)[:4]
    answers = {case.id: answer for case, answer in runner.processes(cases, 2, told.append)}
    assert set(answers) == {case.id for case in cases}
    for case in cases:
        lost = how is always_dies and case.seed == 0
        assert isinstance(answers[case.id], WorkerDied if lost else list), answers[case.id]
    assert told and all("a worker died; once more, alone" in text for text in told)


def test_bad_input_that_a_case_finds_ends_the_study_with_one_line(
    small: ScenarioFile, tmp_path: Path
) -> None:
    wrong = load_with(small, 'name = "writers"', "first_node = 2")
    with pytest.raises(
        BadInput, match=r"small: job ior: expected nodes below cluster\.nodes = 2, found 'up to 2'"
    ):
        study.run(wrong, tmp_path / "out", jobs=2)


def test_a_case_without_result_has_a_row_that_says_why(small: ScenarioFile, tmp_path: Path) -> None:
    full = load_with(small, 'preset = "paper"', 'preset = "paper"\nost_bytes = "8M"')
    done = study.run(full, tmp_path / "out", jobs=1)
    assert len(done.rows) == 12
    assert all(
        "expected space for 256.0 MiB, found OSTs of 80.0 MiB in all" in row.error
        for row in done.rows
        if row.osts == 10
    ), done.rows[0].error
    assert "No result: " in report.write(full, done.cases, done.rows, tmp_path / "out").read_text()


class References(HTMLParser):
    """Everything that a page would load, and its pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.pictures: list[bytes] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data", "action", "poster", "xlink:href"):
                if value and value.startswith("data:image/png;base64,"):
                    self.pictures.append(base64.b64decode(value.partition(",")[2], validate=True))
                else:
                    self.outside.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report_needs_nothing_else_and_every_picture_is_a_file_too(
    small: ScenarioFile, serial: bytes, tmp_path: Path
) -> None:
    folder = tmp_path / "serial"
    report.write(small, expand(small), read(folder / "rows.jsonl"), folder)
    page = References()
    content = (folder / "report.html").read_text()
    page.feed(content)
    assert page.outside == []
    assert not page.tags & {"script", "link", "iframe", "object", "base"}
    assert "@import" not in content and "url(" not in content
    files = {path.name: path.read_bytes() for path in folder.glob("*.png")}
    assert set(files) == {"bandwidth.png", "ost-cost.png", "osts.png"}
    assert all(png.startswith(b"\x89PNG") for png in page.pictures)
    assert set(files.values()) < set(page.pictures) and len(page.pictures) == 2 * len(files), (
        "for dark pages, too"
    )
    assert "width=device-width" in content and "prefers-color-scheme: dark" in content
    for wanted in ('name = "small"', "seeds 0, 1", "tarazu", "numpy", "cluster.osts = 20"):
        assert wanted in page.text


def test_runs_in_a_row_have_a_picture_of_their_own(small: ScenarioFile, tmp_path: Path) -> None:
    one = load_with(small, "[10, 20]", "[10]")
    runs = load_with(
        one,
        "[sweep]",
        '[loop]\nruns = 3\nperiod_s = 0.4\ndrift = {"writers.workload.block_bytes" = 1.5}\n[sweep]',
    )
    done = study.run(runs, tmp_path / "out", jobs=1)
    assert len(done.rows) == 18
    report.write(runs, done.cases, done.rows, tmp_path / "out")
    assert (tmp_path / "out" / "runs.png").exists()
    first = [row for row in done.rows if row.case == done.rows[0].case]
    assert [row.run for row in first] == [1, 2, 3]
    assert [row.written_bytes for row in first] == [4 * (64 << 20), 4 * (96 << 20), 4 * (144 << 20)]
    assert first[1].start_s >= max(0.4, first[0].completion_s) and first[1].start_s == pytest.approx(
        max(0.4, first[0].start_s + first[0].completion_s)
    )
