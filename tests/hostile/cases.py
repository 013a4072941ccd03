"""One case a reader: how its file is made whole, and how the product reads it. See `files.py`."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tarazu import config, escapes, native
from tarazu.allocate.records import Ended
from tarazu.batch import jobs as batch_jobs
from tarazu.batch.environment import small_text
from tarazu.batch.jobs import Job
from tarazu.changes.change import Change
from tarazu.changes.held import Held
from tarazu.changes.trail import event
from tarazu.cli.job import own as own_jobs
from tarazu.daemons import ordered
from tarazu.daemons.asking import view_in
from tarazu.daemons.burstd import former as former_pins
from tarazu.daemons.burstd.batch import Batch
from tarazu.daemons.burstd.jobs import Jobs
from tarazu.daemons.burstd.kept import BurstsDirectory as BurstsKept
from tarazu.daemons.changes import trail
from tarazu.daemons.changes.agents import former as former_levers
from tarazu.daemons.changes.agents import pools
from tarazu.daemons.changes.store import Store
from tarazu.daemons.council import here as council_here
from tarazu.daemons.council.kept import CouncilDirectory as CouncilKept
from tarazu.daemons.mdsd.book import Book
from tarazu.daemons.mdsd.filling import Filling
from tarazu.daemons.mdsd.hour import Hour, OstNow, ServerNow, Sums
from tarazu.daemons.mdsd.hour import encode as encode_hour
from tarazu.daemons.mdsd.record import Record
from tarazu.daemons.mdsd.router_plan import scheduler
from tarazu.daemons.mdsd.usual_times import UsualTimes
from tarazu.daemons.noted import Noted
from tarazu.daemons.page.results import Results
from tarazu.daemons.page.ring import Moment, Ring
from tarazu.doctor import capacity
from tarazu.doctor import former as doctor_former
from tarazu.doctor.node import Node
from tarazu.doctor.units import values
from tarazu.durable import boot_id
from tarazu.forwarding import curve_csv, reading
from tarazu.forwarding.estimate import database as benchmarks
from tarazu.forwarding.mapping import mapping_file
from tarazu.forwarding.routers import hosts, udsp
from tarazu.forwarding.traffic import days, imports, machine_file
from tarazu.layout import pfl
from tarazu.model import Ost, SystemView
from tarazu.ost_state import Verdict
from tarazu.prepare import askers, former
from tarazu.run import job_log
from tarazu.run.command_line.launchers import _in_files
from tarazu.run.handed import _read as handed_spools
from tarazu.run.plan import reports
from tarazu.sim.forwarding import ior, jobs
from tarazu.sim.whatif.ior import results, words
from tarazu.stats.evidence import Evidence
from tarazu.store import control, stop
from tarazu.store.placement_map import read_map, write_map
from tarazu.trace import exchange, history, past, runfile, spool
from tarazu.trace import load_phases as phases
from tarazu.trace.follow import LiveSpool
from tarazu.tune.councils import Councils
from tarazu.tune.observation import Direction, Observation
from tarazu.why.facts import JobThen
from tarazu.wire import admission, keys, local
from tarazu.wire.messages import ThenRequest
from tests.hostile.database import SEED, use
from tests.hostile.ledger import write_ledger
from tests.trace import conftest as spools

DATA = Path(__file__).parents[1] / "data"
LEVERS = {"max_rpcs_in_flight": ("8", "16")}


class Case(NamedTuple):
    name: str
    sites: tuple[str, ...]
    """Of `sites.py`: what reading the whole file comes through."""
    make: Callable[[Path], Path]
    """A whole file in this directory."""
    read: Callable[[Path], object]
    """As the product does. May raise a TarazuError."""
    places: int = 0
    """Of a reader that is slow: so many bytes are changed in the short form."""


def _text(name: str, text: str, mode: int = 0o644) -> Callable[[Path], Path]:
    def make(directory: Path) -> Path:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    return make


def _copy(source: Path) -> Callable[[Path], Path]:
    def make(directory: Path) -> Path:
        path = directory / source.name
        path.write_bytes(source.read_bytes())
        return path

    return make


def _with_key(directory: Path) -> Path:
    secret, public = keys.create(directory, "oss")
    (directory / "oss-n1.pub").write_bytes(public.read_bytes())
    public.unlink()
    return secret


def _admitted(name: str) -> Callable[[Path], Path]:
    def make(directory: Path) -> Path:
        _with_key(directory)
        (directory / "oss-n1.uids").write_text("1000-1999, 2500\n")
        (directory / "oss-n1.targets").write_text("scratch-OST0001 # ours\n")
        return directory / name

    return make


def _map(directory: Path) -> Path:
    from tests.store.test_placement_map import KEY, PFL1, PLAIN, row

    path = directory / "map.1"
    lists = ((1,), (2, 3, 4), tuple(range(5, 13)), tuple(range(16)))
    rows = [row(0, PLAIN), row(1, PFL1, lists, (True,) * 4)]
    write_map(
        path, generation=1, hash_key=KEY, ost_counts={"lustre": 35}, rows=rows, expires_s=0, created_s=1000
    )
    return path


def _lookup(path: Path) -> None:
    native.map_lookup(path, "lustre", "/o/f.0", native.template("/o/f.0", rank=0), 0, 0, 0)


def _spool(directory: Path) -> Path:
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
    from tests.trace.test_history import sample

    return history.History(directory).append(sample(), "one")


def _past(path: Path) -> None:
    with open(path, "rb") as file:
        past.read_past([file.fileno()], 5)


def _exported(format: str) -> Callable[[Path], Path]:
    def make(directory: Path) -> Path:
        from tests.trace.test_history import sample

        path = directory / f"x.{format}"
        exchange.write_file([exchange.NamedRun("one", sample())], format, path)
        return path

    return make


def _view(directory: Path) -> Path:
    path = directory / "view.json"
    view = SystemView("scratch", 1.0, (Ost(0, "oss1", 1 << 40, 1 << 39, 1 << 38),))
    path.write_bytes(msgspec.json.encode(view))
    return path


def _report(directory: Path) -> Path:
    path = directory / "one.report"
    path.write_bytes(
        msgspec.json.encode(reports.KeptReport(local.StepReport("fs", (1,), ("a",)), "/nowhere"))
    )
    return path


def _prepared(directory: Path) -> Path:
    path = directory / "prepared" / "node1-7-abcdef.json"
    path.parent.mkdir()
    path.write_bytes(msgspec.json.encode(former.Note(1, "node1", 7, "5", "ior")))
    return path


def _layouts(directory: Path) -> Path:
    store = Store(directory / "prepared")
    held = Held(Change(lever="layout", target="/scratch/me/out", wanted={"": "-c 4"}), (), (), lasting=True)
    with store.locked():
        store.note(held.key, msgspec.structs.replace(held, askers=(askers.mine(),)))
    return store.directory / "changes.json"


def _trail(directory: Path) -> Path:
    trail.Trail(directory, "tarazu-pool").add(
        event("set", "tarazu-pool", Change(lever="pool", target="a.good", wanted={"3": "out"}))
    )
    return directory / trail.NAME


def _holder(directory: Path) -> Path:
    Store(directory).hold_by("tarazu change undo --all by root")
    return directory / "held"


def _router_s(directory: Path) -> Path:
    return _holder(directory / "tarazu-routers")


def _council() -> Councils:
    """With a client that it has heard of."""
    councils = Councils({name: list(values) for name, values in LEVERS.items()})  # type: ignore[arg-type]
    seen = Observation(1.0, read=Direction(10**8, 100), demand=1.0, rpc_bytes=2.0**20)
    for second in range(20):
        councils.receive("client1", "client", seen, {"max_rpcs_in_flight": "8"}, float(second))
    return councils


def _knowledge(directory: Path) -> Path:
    CouncilKept(directory).write_knowledge(_council().knowledge())
    return directory / "knowledge.json"


def _restore(path: Path) -> None:
    kept = CouncilKept(path.parent).knowledge()
    if kept:
        _council().restore(kept[0])


def _status(directory: Path) -> Path:
    kept = CouncilKept(config.State(str(directory)).council)
    kept.directory.mkdir()
    kept.write_status(b'{"mode":"apply","written_s":1.5}')
    return kept.directory / "status.json"


def _here(path: Path) -> None:
    council_here.here(config.Settings(state=config.State(str(path.parent.parent))))


def _ordered(directory: Path) -> Path:
    ordered.order(directory / "mode", "apply", "by me")
    return directory / "mode"


def _pool(directory: Path) -> Path:
    path, note = directory / pools.FORMER, pools.Note(True, (0, 1), (0,), (0,), {5: "in"})
    path.write_bytes(msgspec.json.encode(pools.Former(1, {"scratch.good": note})))
    path.chmod(0o600)
    return path


def _levers(directory: Path) -> Path:
    """Of a former version."""
    note = {
        "before": {"parameters": [["osc.a.max_rpcs_in_flight", "8", "12"]]},
        "steps": ["8"],
        "left_to": "",
    }
    file = {"format": 1, "boot": boot_id(), "levers": {"max_rpcs_in_flight": note}}
    (directory / "levers.json").write_text(json.dumps(file))
    return directory / "levers.json"


def _mapping(directory: Path) -> Path:
    path = directory / "mapping.json"
    mapping_file.write(path, "greedy", [udsp.rule("10.77.0.[31-40]@tcp1", "10.1.0.2@tcp")])
    return path


def _pins(directory: Path) -> Path:
    pins = former_pins.Pin(1.0, "ann", "io", "n[1-4]"), former_pins.Pin(2.0, "bob", "x", "", "tz0|tz1", "7")
    path = directory / "pins.jsonl"
    lines = (msgspec.json.encode(pin) + b"\n" for pin in pins)
    path.write_bytes(b'{"tarazu":"pins","v":1}\n' + b"".join(lines))
    return path


def _jobs(directory: Path) -> Path:
    path = directory / "jobs.db"
    kept = Jobs(path)
    kept.begin(100.0, 100.0)
    job = Job("1", "ann", "io", ("n1", "n2"), 110.0, 120.0)
    kept.put([job])
    from tarazu.forwarding.bursts.characteristics import JobBytes

    kept.add_moved([JobBytes(job, np.array([1, 2], "<i8"), 5)], 130.0)
    kept.close()
    return path


def _use_jobs(path: Path) -> None:
    kept = Jobs(path)
    try:
        kept.begin(100.0, 100.0)
        kept.running()
        kept.overlapping(0.0, 1e9)
        kept.without_moved(1e9)
        for application in kept.applications(0, 0.0, 1e9):
            kept.moved(application, 1e9, 10)
        kept.gaps()
        kept.put([Job("2", "ann", "io", ("n1",), 110.0, 120.0)])
        kept.forget()
    finally:
        kept.close()


def _ring(directory: Path) -> Path:
    ring = Ring(directory / "ring.db")
    ring.add({"scratch": Moment(600, 0.5, 0.6, 1.1, None, 1e9, 5, 0)})
    ring.close()
    return directory / "ring.db"


def _use_ring(path: Path) -> None:
    ring = Ring(path)
    try:
        for name in ring.names():
            ring.read(name, 60, 0.0)
        ring.add({"scratch": Moment(660, 0.5, 0.6, 1.1, 1.0, 1e9, 5, 0)})
    finally:
        ring.close()


def _ledger(name: str) -> Callable[[Path], Path]:
    def make(directory: Path) -> Path:
        write_ledger(directory)
        return next(directory.glob(f"{name}-*"))

    return make


def _open_book(path: Path) -> None:
    Book.open(path.parent).close()


def _traffic(directory: Path) -> Path:
    from tests.forwarding.traffic.test_days import DAY, traffic

    days.append(directory, traffic([(DAY + 10, "n1", 1, 2, 3), (DAY + 20, "n2", 4, 5, 6)]))
    (path,) = (directory / "parts").glob("*.parquet")
    return path


def _imported(path: Path) -> None:
    imports.read(
        [path], path.parent / "out", imports.Columns(read="read", written="written"), imports.Rules()
    )


def _measured(directory: Path) -> Path:
    from tests.forwarding.estimate.test_database import measured

    path = directory / "benchmarks.csv"
    benchmarks.save(benchmarks.Benchmarks([measured(1, 1e9, "a"), measured(4, 3e9, "b")]), path)
    return path


def _control(directory: Path) -> Path:
    control.write_control(directory)
    control.stop(directory, "for a while")
    return directory / "control"


def _about(directory: Path) -> Path:
    values: dict[type, Any] = {str: "a", int: 1, float: 1.0}
    made = {f.name: values.get(f.type, 1) for f in msgspec.structs.fields(control.RunningStep)}
    control.write_about(directory, control.RunningStep(**made))
    return directory / control.ABOUT


def _results(directory: Path) -> Path:
    path = directory / "report.json"
    path.write_text('{"jobs": [], "since_s": 1.0, "until_s": 2.0}')
    return path


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
        e = Evidence(60.0 * minute, 60.0 * minute + 60, "brw_stats", 60, 60 << 20, 0.6, 1.0)
        times.usual.pass_time(e.at_s)
        times.usual.learn(("scratch", minute % 3, bool(minute % 2)), e)
    times.close()
    return directory / "usual.msgpack"


def _ended(directory: Path) -> Path:
    path = directory / "list"
    path.write_text("10|10|wrf|ann|n[001-003]|1795358000|1795358860|1795359000|COMPLETED|long\n")
    return path


def _take_ends(path: Path) -> None:
    path = Path(shutil.copy(path, path.with_suffix(".taken")))
    Batch("slurm", path.parent, lambda _: None)._take_ends(path)


def _append(path: Path) -> None:
    """A log is written on behind what was lost of it."""
    book = Book.open(path.parent)
    try:
        book.note(Ended("step-0-1", book.clock.now()))
        book.commit()
    finally:
        book.close()


def _looked_at(path: Path) -> None:
    list(doctor_former._noted(Node(config.Settings(state=config.State(str(path.parent.parent))))))


def _doctored(path: Path) -> None:
    list(capacity._database(str(path)))


def _lost(path: Path) -> None:
    """As a file and as one of its folder."""
    for found in (str(path), str(path.parent)):
        for of in results.read(found):
            words.answer(found, of.lost)


TOML = """
[resources]
kind = "ost"
count = 4
nodes = 16
[[job]]
name = "a"
nodes = 2
cpu_s = 10
io_bytes = "1G"
curve = { 1 = 1.0e9, 4 = 3e9 }
"""
SPOOL = "tarazu.trace.spool:read_spools"
CASES = (
    Case(
        "configuration",
        ("tarazu.config.files:_content", "tarazu.config.files:read"),
        _text("tarazu.toml", '[mdsd]\nrequests = "tcp://10.0.0.1:5770"\n[run]\nmode = "place"\nwait_s = 2\n'),
        config.load,
    ),
    Case(
        "PFL file",
        ("tarazu.layout.pfl:read",),
        _text("pfl.ini", "[a]\nmatch = /ior/*\ncomponents = 0-128M:1, 128M-512M:3, 512M-EOF:8\n"),
        pfl.read,
    ),
    Case("secret key", ("tarazu.wire.keys:load",), _with_key, keys.load),
    Case(
        "public key", ("tarazu.wire.keys:load",), _admitted("oss-n1.pub"), lambda p: admission.check(p.parent)
    ),
    Case(
        "uids of a key",
        ("tarazu.wire.admission:_words",),
        _admitted("oss-n1.uids"),
        lambda p: admission.check(p.parent),
    ),
    Case(
        "targets of a key",
        ("tarazu.wire.admission:_words",),
        _admitted("oss-n1.targets"),
        lambda p: admission.check(p.parent),
    ),
    Case("mode that was ordered", ("tarazu.daemons.ordered:ordered",), _ordered, ordered.ordered),
    Case(
        "notes of pools, of an earlier version",
        ("tarazu.daemons.noted:Noted.read",),
        _pool,
        lambda p: pools.PoolStore(p.parent).load(),
    ),
    Case(
        "former notes of parameters, and of what was drained",
        ("tarazu.daemons.noted:Noted.read",),
        _levers,
        lambda p: former_levers.read(Noted(p.parent), 0.0),
    ),
    Case(
        "trail of changes",
        ("tarazu.daemons.changes.trail:read",),
        _trail,
        lambda p: list(trail.read(p, 100)),
    ),
    Case(
        "who holds an agent",
        ("tarazu.daemons.changes.store:first_of",),
        _holder,
        lambda p: Store(p.parent).why_held,
    ),
    Case("who holds a daemon, looked at", ("tarazu.doctor.former:_noted",), _router_s, _looked_at),
    Case("mapping in force", ("tarazu.forwarding.mapping.mapping_file:read",), _mapping, mapping_file.read),
    Case("pins", ("tarazu.daemons.burstd.former:read",), _pins, former_pins.read),
    Case(
        "status of burstd",
        (
            "tarazu.daemons.burstd.kept:BurstsDirectory.status",
            "tarazu.daemons.burstd.kept:BurstsDirectory.told",
        ),
        _status,
        lambda p: BurstsKept(p.parent).told(),
    ),
    Case("jobs of burstd", ("tarazu.daemons.burstd.jobs:Jobs._open",), _jobs, _use_jobs, 100),
    Case(
        "knowledge",
        (
            "tarazu.daemons.council.kept:CouncilDirectory.knowledge",
            "tarazu.tune.council:Council.restore",
            "tarazu.tune.councils:Councils.restore",
            "tarazu.tune.learning.memory:Remembering.restore",
        ),
        _knowledge,
        _restore,
    ),
    Case(
        "status of a council",
        ("tarazu.daemons.council.here:here", "tarazu.daemons.council.kept:CouncilDirectory.status"),
        _status,
        _here,
    ),
    Case("imbalance over time", ("tarazu.daemons.page.ring:Ring._open",), _ring, _use_ring, 100),
    Case(
        "results on the page",
        (
            "tarazu.daemons.page.results:Results._bytes",
            "tarazu.daemons.page.results:_content",
            "tarazu.daemons.page.results:is_trail",
        ),
        _results,
        lambda p: Results(str(p.parent)).all(),
    ),
    Case(
        "ledger's snapshot",
        ("tarazu.store.frames:read", "tarazu.daemons.mdsd.book:Book._decoded"),
        _ledger("snapshot"),
        _open_book,
        30,
    ),
    Case(
        "interaction database",
        (
            "tarazu.store.sqlite:SqliteConnection.__init__",
            "tarazu.store.sqlite:_check_file",
            "tarazu.store.database:_decode_step",
            "tarazu.store.files:_read",
        ),
        _copy(SEED),
        use,
        12,
    ),
    Case(
        "interaction database, looked at", ("tarazu.doctor.capacity:_database",), _copy(SEED), _doctored, 200
    ),
    Case("placement map", ("tarazu.store.placement_map:read_map",), _map, read_map),
    Case("placement map in the library", (), _map, _lookup),
    Case(
        "control page",
        ("tarazu.store.control:read_control",),
        _control,
        lambda p: control.read_control(p.parent),
    ),
    Case(
        "control page, changed",
        ("tarazu.store.control:_store",),
        _control,
        lambda p: control.resume(p.parent),
    ),
    Case(
        "stop file",
        ("tarazu.store.stop:_first_line",),
        _text("stop", "repair until noon\n"),
        lambda p: stop._first_line(str(p)),
    ),
    Case(
        "what a step is", ("tarazu.store.control:read_about",), _about, lambda p: control.read_about(p.parent)
    ),
    Case("spool", (SPOOL, "tarazu.trusted:open_file"), _spool, spool.read_spools, 300),
    Case("spool that grows", (), _spool, _follow, 300),
    Case("spools handed over", (SPOOL,), _spool, lambda p: handed_spools([p]), 100),
    Case("phases of a spool", ("tarazu.trace.load_phases:load", SPOOL), _spool, phases.load, 40),
    Case("packed spool", ("tarazu.run.nodes.framed:Frames._whole",), _gz, _unpack, 60),
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
    Case("run for a forecast", ("tarazu.trace.runfile:read_header",), _run, _past, 300),
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
        _copy(DATA / "phases" / "ser_dd.darshan"),
        phases.load,
        60,
    ),
    Case(
        "jobs.log",
        ("tarazu.run.job_log:numbered", "tarazu.run.job_log:_unquoted"),
        _text("jobs.log", "2026-11-22T10:00:00 a-b app=ior mode=place job=4711 problem='none' exit=0\n"),
        lambda p: (
            own_jobs.lines(config.Settings(run=config.RunSettings(state_dir=str(p.parent))), "4711"),
            job_log.steps(p, 0, 1e12),
        ),
    ),
    Case(
        "kept report",
        ("tarazu.run.plan.reports:_deliver",),
        _report,
        lambda p: reports._deliver(p, "/nowhere"),
    ),
    Case(
        "prepared directories",
        ("tarazu.prepare.former:notes",),
        _prepared,
        lambda p: former.notes(p.parent),
    ),
    Case(
        "default layouts that are set",
        ("tarazu.prepare.askers:unwanted",),
        _layouts,
        lambda p: askers.unwanted(p.parent),
    ),
    Case(
        "curves",
        ("tarazu.forwarding.reading:content", "tarazu.table:Csv.__init__"),
        _text("curves.csv", "application,resources,bytes_per_s\nior,1,1e9\nior,4,4e9\n"),
        curve_csv.read,
    ),
    Case(
        "jobs to place",
        (),
        _text("jobs.toml", TOML),
        jobs.read,
        100,
    ),
    Case("benchmarks", ("tarazu.table:Csv.__init__",), _measured, benchmarks.load),
    Case(
        "IOR's output",
        (),
        _copy(DATA / "ior" / "4.0.0-posix-unique.json"),
        ior.read,
        150,
    ),
    Case("results of IO500", (), _copy(DATA / "ior" / "io500" / "ior-easy-write.txt"), _lost),
    Case("table of IOR's ranks", (), _copy(DATA / "ior" / "io500" / "ior-easy-write.csv"), _lost),
    Case("IOR's output, for its ranks", (), _copy(DATA / "ior" / "4.0.0-stonewalled.json"), _lost),
    Case("IOR's output with times of ranks", (), _copy(DATA / "ior" / "4.1.0-verbose.txt"), _lost),
    Case("machine", (), _text("machine", "n[1-2] cabinet=c1 io_node=r1\nn3 io_node=r2\n"), machine_file.read),
    Case("hosts' NIDs", (), _text("nids", "n[1-3] 10.77.0.[1-3]@tcp1 # ours\nr1 10.1.0.1@tcp\n"), hosts.read),
    Case(
        "Slurm's list",
        ("tarazu.batch.jobs:read",),
        _text(
            "sacct",
            "JobID|JobIDRaw|JobName|User|NodeList|Submit|Start|End|State|Partition\n10|10|wrf|ann|n[001-003,7]|1795358000|1795358860|1795359000|COMPLETED|long\n",
        ),
        batch_jobs.read,
    ),
    Case(
        "traffic of a day",
        ("tarazu.forwarding.traffic.day_file:DayFile.__init__", "tarazu.forwarding.traffic.day_file:_about"),
        _traffic,
        lambda p: list(days.read(p.parents[1], 0, 1e12)),
        150,
    ),
    Case(
        "traffic in CSV",
        ("tarazu.table:csv_blocks",),
        _text("t.csv", "time,host,read,written\n1700000000,n1,1,2\n1700000010,n2,3,4\n"),
        _imported,
        60,
    ),
    Case(
        "file system in JSON",
        ("tarazu.daemons.asking:view_in",),
        _view,
        lambda p: view_in(str(p)),
    ),
    Case(
        "program",
        ("tarazu.escapes:read_elf",),
        _copy(native.library_path("libtarazu.so")),
        escapes.read_elf,
        400,
    ),
    Case(
        "script",
        ("tarazu.escapes:_interpreter",),
        _text("script", "#!/usr/bin/env -S python3 'a b'\nx\n"),
        lambda p: escapes._interpreter(str(p)),
    ),
    Case(
        "ledger's log",
        ("tarazu.store.frames:read", "tarazu.store.journal:Journal.resume"),
        _ledger("log"),
        _append,
        30,
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
        ("tarazu.daemons.mdsd.usual_times:UsualTimes._read", "tarazu.stats.usual:Usual.load"),
        _usual,
        lambda p: UsualTimes(str(p.parent)),
    ),
    Case("jobs that have ended", ("tarazu.daemons.burstd.batch:Batch._take_ends",), _ended, _take_ends),
    Case(
        "jobs of routers",
        (),
        _text("jobs", "4711 1000 n[1-3]\n4712 1001 n4 # ours\n"),
        lambda p: batch_jobs.nodes_of_jobs(reading.text(p, scheduler.MAX_BYTES), str(p)),
    ),
    Case(
        "Open MPI's settings",
        ("tarazu.run.command_line.launchers:_in_files",),
        _text(".openmpi/mca-params.conf", "# ours\nplm = slurm\nplm_rsh_agent = ssh -q\n"),
        lambda p: _in_files("mpirun", {"HOME": str(p.parents[1])}),
    ),
    Case(
        "launcher's file",
        ("tarazu.batch.environment:small_text",),
        _text("hosts", "n1 slots=4\nn2\n"),
        lambda p: small_text(str(p)),
    ),
    Case(
        "run of a descriptor",
        ("tarazu.trace.history:opened",),
        _run,
        lambda p: [f.close() for f in [history.opened(p)] if f],
        20,
    ),
    Case(
        "unit file",
        ("tarazu.doctor.units:values",),
        _text("etc/systemd/system/a.service", "[Service]\nUser=slurm\nAmbientCapabilities=CAP_SYS_ADMIN\n"),
        lambda p: values(Node(config.Settings(), system=p.parents[3]), "a", "User"),
    ),
)
