"""What mdsd keeps, and the interaction database."""

from __future__ import annotations

import math
from pathlib import Path

from tarazu.daemons.mdsd.filling import Filling
from tarazu.daemons.mdsd.hour import Hour, OstNow, ServerNow, Sums
from tarazu.daemons.mdsd.hour import encode as encode_hour
from tarazu.daemons.mdsd.record import Record
from tarazu.daemons.mdsd.usual_times import UsualTimes
from tarazu.doctor import capacity
from tarazu.model import Ost, SystemView
from tarazu.ost_state import Verdict
from tarazu.stats.evidence import Evidence
from tarazu.then import JobThen
from tarazu.wire.messages import ThenRequest
from tests.hostile.cases.case import Case, copy
from tests.hostile.database import SEED, use


def _filling(directory: Path) -> Path:
    osts = tuple(Ost(n, "oss", 10**12, 10**11 * n, 10**11 * n) for n in range(1, 4))
    Filling(str(directory)).take(SystemView("scratch", 0.0, osts), 1.8e9)
    return directory / "filling.msgpack"


def _hour(directory: Path) -> Path:
    kept = Hour("scratch", 1_800_000_000, 60)
    ost = OstNow("oss0", 1e9, 1e8, 9.0, 0.5, 1.0, 0.4, Verdict.OK, 1e9)
    server = ServerNow(0.2, 1e10, [JobThen("4711", 1e9, 9)])
    for span in range(1, 4):
        kept.add(1_800_000_000 + 60 * span, {0: ost, 1: ost}, {"oss0": server}, 300.0)
    (directory / "then").mkdir(exist_ok=True)
    path = directory / "then" / "1800000000-scratch.hour"
    path.write_bytes(encode_hour(kept.kept()))
    return path


def _ask_of_hour(path: Path) -> None:
    record = Record(str(path.parent.parent), lambda peer, reply: None, lambda: None)
    try:
        record._answer(ThenRequest("q", "scratch", (0, 1), 0, 0), Sums([0, 1], 0, 2e9), None, 2, math.inf)
    finally:
        record._worker.shutdown()


def _usual(directory: Path) -> Path:
    times = UsualTimes(str(directory))
    for minute in range(90):
        e = Evidence(60.0 * minute, 60.0 * minute + 60, "brw_stats", 60, 60 << 20, 0.6, 1.0, 1.0)
        times.usual.pass_time(e.at_s)
        times.usual.learn(("scratch", minute % 3, bool(minute % 2)), e)
    times.close()
    return directory / "usual.msgpack"


def _doctored(path: Path) -> None:
    list(capacity._database(str(path)))


CASES = (
    Case(
        "interaction database",
        (
            "tarazu.store.sqlite:SqliteConnection.__init__",
            "tarazu.store.sqlite:_check_file",
            "tarazu.store.database:_decode_step",
            "tarazu.store.files:_read",
        ),
        copy(SEED),
        use,
        12,
    ),
    Case(
        "interaction database, looked at", ("tarazu.doctor.capacity:_database",), copy(SEED), _doctored, 200
    ),
    Case(
        "samples of fill",
        ("tarazu.daemons.mdsd.filling:Filling.__init__",),
        _filling,
        lambda p: Filling(str(p.parent)),
    ),
    Case(
        "an hour of the system",
        ("tarazu.daemons.mdsd.record:Record._answer", "tarazu.daemons.mdsd.hour:decode"),
        _hour,
        _ask_of_hour,
    ),
    Case(
        "usual times of I/Os",
        ("tarazu.daemons.mdsd.usual_times:UsualTimes._read", "tarazu.daemons.mdsd.usual_times:load"),
        _usual,
        lambda p: UsualTimes(str(p.parent)),
    ),
)
