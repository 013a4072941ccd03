"""What was seen of a run: spools, runs, other formats."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

from tarazu.daemons.clientd.forecasts import prepared
from tarazu.model import FileName, Forecast, JobStep
from tarazu.run.handed import _read as handed_spools
from tarazu.trace import exchange, history, past, recorded, runfile, spool
from tarazu.trace.darshan import read as darshan
from tarazu.trace.follow import LiveSpool
from tarazu.trace.records import RunRecord
from tests.hostile.cases.case import DATA, Case, copy
from tests.trace import conftest as spools

SPOOL = "tarazu.trace.spool:read_spools"


def one_spool(directory: Path) -> Path:
    """A file of one process."""
    path = directory / "n1.1.tzs"
    path.write_bytes(_spool_bytes())
    return path


def _spool_bytes() -> bytes:
    made = [
        spools.create_record("/a/f.3", "/a/f.{rank}", "/a/f.#", nth=(1, 2), outcome=4, found=2, row_id=7),
        spools.close_record("/a/f.3", 4096, written=5000, low=16, segments=2),
        spools.end_record(),
    ]
    return spools.spool(made, rank=3, ranks=8, capacity=4096)


def _follow(path: Path) -> None:
    with contextlib.suppress(struct.error), open(path, "rb") as file:  # as `Watch` does
        LiveSpool().update(file.fileno(), min(len(_spool_bytes()), os.fstat(file.fileno()).st_size), 0)


def _run(directory: Path) -> Path:
    return history.History(directory).append(_sample(), "one")


def _sample() -> RunRecord:
    from tests.trace.test_history import sample

    return sample()


def _prepared(directory: Path) -> Path:
    files = tuple(
        Forecast(FileName(f"/a/f.{n}", f"/a/f.{n}", "/a/f.{n}", False, n, 1, n), 4096) for n in range(3)
    )
    step = JobStep("fs", 1000, "ior", "7", ranks=3)
    path = directory / "prepared"
    path.write_bytes(prepared.encode(prepared.Prepared("stamp", step, {}, (), prepared.WholeForecast(files))))
    return path


def _past(path: Path) -> None:
    with open(path, "rb") as file:
        past.read_past([file.fileno()], 5)


def _exported(format: str) -> Callable[[Path], Path]:
    def make(directory: Path) -> Path:
        path = directory / f"x.{format}"
        exchange.write_file([exchange.NamedRun("one", _sample())], format, path)
        return path

    return make


def _gz(directory: Path) -> Path:
    path = directory / "1.part"
    path.write_bytes(gzip.compress(_spool_bytes(), mtime=0))
    return path


def _unpack(path: Path) -> None:
    """As the answer of another node, whose digest fits."""
    path = Path(shutil.copy(path, path.with_suffix(".sent")))
    import hashlib

    from tarazu.run.nodes.framed import Frames, _Sender

    frames = Frames(path.parent)
    descriptor = os.open(path, os.O_RDWR)
    frames._senders[b"a"] = _Sender(path, descriptor, {1})
    frames._whole(b"a", 1, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest(), "gz")


CASES = (
    Case("spool", (SPOOL, "tarazu.trusted:open_file"), one_spool, spool.read_spools, 300),
    Case("spool that grows", (), one_spool, _follow, 300),
    Case("spools handed over", (SPOOL,), one_spool, lambda p: handed_spools([p]), 100),
    Case("packed spool", ("tarazu.run.nodes.framed:Frames._whole",), _gz, _unpack, 60),
    Case(
        "what the next run begins with",
        ("tarazu.daemons.clientd.forecasts.prepared:decode",),
        _prepared,
        lambda p: prepared.decode(p.read_bytes()),
    ),
    Case(
        "run",
        (
            "tarazu.trace.runfile:_Bounded.__init__",
            "tarazu.trace.runfile:read_header",
            "tarazu.table:Csv.__init__",
        ),
        _run,
        runfile.read_run,
        300,
    ),
    Case(
        "run for its recording", ("tarazu.trace.recorded:read_recorded",), _run, recorded.read_recorded, 300
    ),
    Case("run for a forecast", ("tarazu.trace.runfile:read_header",), _run, _past, 300),
    Case(
        "run of a descriptor",
        ("tarazu.trace.history:opened",),
        _run,
        lambda p: [f.close() for f in [history.opened(p)] if f],
        20,
    ),
    Case(
        "exported CSV",
        ("tarazu.trace.exchange:_read_csv",),
        _exported("csv"),
        lambda p: list(exchange.read(p)),
        200,
    ),
    Case(
        "exported JSON",
        ("tarazu.trace.exchange:_read_json",),
        _exported("json"),
        lambda p: list(exchange.read(p)),
        200,
    ),
    Case(
        "exported Parquet",
        ("tarazu.table:read_parquet",),
        _exported("parquet"),
        lambda p: list(exchange.read(p)),
        100,
    ),
    Case(
        "Darshan log",
        ("tarazu.trace.darshan.regions:open_regions",),
        copy(DATA / "phases" / "ser_dd.darshan"),
        lambda p: darshan.read(str(p)),
        60,
    ),
)
