"""Statistics files that are none: a read ends, at once, and takes little memory."""

from __future__ import annotations

import os
import resource
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tarazu.stats import mds, reading
from tarazu.stats.collector import Collector
from tarazu.stats.mds_load import MdsCollector
from tarazu.stats.osp import Osps
from tarazu.stats.sources import survey
from tarazu.wire import messages

MIB = 1 << 20


def fifo(path: Path) -> None:
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.mkdir()


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


def circle(path: Path) -> None:
    path.symlink_to(path.name)


def nowhere(path: Path) -> None:
    path.symlink_to("/nowhere")


def one_line(path: Path) -> None:
    path.write_bytes(b"job_stats:\n- job_id: " + b"a " * (2 * MIB))


@pytest.mark.parametrize("put", [fifo, directory, device, sparse, circle, nowhere, one_line])
def test_odd_things_in_the_place_of_every_file(
    data: Path, tmp_path: Path, put: Callable[[Path], None]
) -> None:
    root = Path(shutil.copytree(data / "versions/2.15-ldiskfs/oss", tmp_path / "oss"))
    good = Collector(root, "oss1").collect(0.0)
    files = [path for path in root.rglob("*") if path.is_file()]
    for path in files:
        path.unlink()
        put(path)
    begin, before_kib = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    collector = Collector(root, "oss1", exports=True)
    for now in (0.0, 60.0):
        report = collector.collect(now)
        assert messages.decode(messages.encode(report)) == report
    assert report.osts == () and len(report.unreadable) > 5 and good.osts
    assert survey(root).sources
    # 40 files of at most 4 MiB, three times over.
    assert time.process_time() - begin < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 1 << 19


def test_a_read_stops_at_its_limit_in_a_file_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(b"x" * MIB)
    stop = threading.Event()

    def grow() -> None:
        with path.open("ab") as file:
            while not stop.is_set() and file.tell() < 64 * MIB:
                file.write(b"x" * MIB)
                file.flush()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        with pytest.raises(ValueError, match="expected at most 4194304 bytes, found more"):
            while writer.is_alive() or path.stat().st_size > 4 * MIB:
                reading.text(path)
                time.sleep(0.001)
    finally:
        stop.set()
        writer.join()


def test_a_whole_file_comes_back_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "file"
    content = bytes(range(256)) * 40
    path.write_bytes(content)
    pieces = list(reading.chunks(path, len(content), 1000))
    assert b"".join(pieces) == content and [len(p) for p in pieces[:-1]] == [1000] * 10
    with pytest.raises(ValueError, match="found more"):
        list(reading.chunks(path, len(content) - 1, 1000))


@pytest.mark.parametrize("put", [fifo, directory, device, circle])
def test_odd_things_in_the_place_of_the_mds_s_files(
    data: Path, tmp_path: Path, put: Callable[[Path], None]
) -> None:
    root = Path(shutil.copytree(data / "versions/2.15-ldiskfs/mds", tmp_path / "mds"))
    for path in [path for path in root.rglob("*") if path.is_file()]:
        path.unlink()
        put(path)
    assert Osps(root).look().known == frozenset()
    state = mds.read(root)
    assert not (state.pools or state.qos)
    assert "host" in MdsCollector(root).collect(0.0).unreadable
