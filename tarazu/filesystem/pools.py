"""The data pools of CephFS as targets: what the monitors say of them, in the words of a report of OSTs.

A target is a data pool, its index the pool's id. Read are `fs ls`, `osd dump`, `df detail`, `osd perf`, `osd tree` and
`osd crush rule dump`, of which a client with `mon 'allow r'` may ask each. `osd perf` has the mean time of a commit on
each OSD in the last seconds; those of a pool are the OSDs of its CRUSH rule, and their mean is the pool's.

A pool that survives the loss of fewer OSDs than the file system's default pool takes no files here: nobody's data is
kept less safely because tarazu runs. Nor does one on the same OSDs as another that takes files: two such pools write no
faster than one.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tarazu import ranges
from tarazu.filesystem.rados import Rados, RadosError
from tarazu.lustre import MAX_OSTS
from tarazu.malformed import described
from tarazu.units import counted, human_bytes
from tarazu.wire.bounds import MAX_ID_CHARACTERS
from tarazu.wire.reports import IoCounters, OssReport, OstReport

log = logging.getLogger("tarazu.ceph")

CLIENT = "client.tarazu"
"""Who asks: its key makes a node report pools."""
SOURCE = "osd_perf"
FASTEST_S = 0.5e-3
"""A commit that `osd perf` shows as 0 ms."""
FLASH = {"ssd": True, "nvme": True, "hdd": False}
"""Ceph's own device classes → nonrotational. Pools of others are compared with all."""
_FLIGHTS = 1000
"""Samples that one interval's mean number of commits in flight counts as."""


Number = Annotated[int, msgspec.Meta(ge=-(1 << 60), le=1 << 60)]
Text = Annotated[str, msgspec.Meta(max_length=4096)]


class _Pool(msgspec.Struct):
    pool: Number
    pool_name: Text
    type: Number
    size: Number
    min_size: Number
    crush_rule: Number
    flags_names: Text = ""
    quota_max_bytes: Number = 0
    quota_max_objects: Number = 0
    erasure_code_profile: Text = ""


class _Osd(msgspec.Struct):
    osd: Number
    up: Number
    inside: Number = msgspec.field(name="in")


class _Dump(msgspec.Struct):
    fsid: Text
    pools: list[_Pool]
    osds: list[_Osd]
    flags: Text = ""
    erasure_code_profiles: dict[str, dict[str, str]] = {}


class _FileSystem(msgspec.Struct):
    name: Text
    data_pool_ids: list[Number]


class _Used(msgspec.Struct):
    max_avail: Number
    stored: Number = 0
    objects: Number = 0
    rd_bytes: Number = 0
    wr: Number = 0
    wr_bytes: Number = 0


class _UsedPool(msgspec.Struct):
    id: Number
    stats: _Used


class _Df(msgspec.Struct):
    pools: list[_UsedPool]


class _Latency(msgspec.Struct):
    commit_latency_ms: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0


class _OsdPerf(msgspec.Struct):
    id: Number
    perf_stats: _Latency


class _Perf(msgspec.Struct):
    osd_perf_infos: list[_OsdPerf] = []


class _PerfAnswer(msgspec.Struct):
    osdstats: _Perf


class _Rule(msgspec.Struct):
    rule_id: Number
    steps: list[dict[str, Any]]


class _Node(msgspec.Struct):
    id: Number
    name: Text
    type: Text
    children: list[Number] = []
    device_class: Text = ""


class _Tree(msgspec.Struct):
    nodes: list[_Node]
    stray: list[_Node] = []


class State(msgspec.Struct, frozen=True):
    """What the monitors said at one moment."""

    file_systems: list[_FileSystem]
    dump: _Dump
    df: _Df
    perf: _PerfAnswer
    tree: _Tree
    rules: list[_Rule]


def ask(command: Callable[..., Any]) -> State:
    """By `Rados.command`. Raises RadosError: no answer, or one of another form."""
    answers = {
        "file_systems": command("fs ls"),
        "dump": command("osd dump"),
        "df": command("df", detail="detail"),
        "perf": command("osd perf"),
        "tree": command("osd tree"),
        "rules": command("osd crush rule dump"),
    }
    try:
        return msgspec.convert(answers, State, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise RadosError(f"the monitors' answer: {error}") from None


class Pools:
    """Reports of the pools. Times are summed up from interval to interval, as a server's own counters are."""

    def __init__(self) -> None:
        self._incarnation = secrets.randbits(62) + 1
        self._sequence = 0
        self._clock_s: float | None = None
        self._wr: dict[int, int] = {}
        self._writes: dict[int, IoCounters] = {}

    def report(self, state: State, now: float, clock_s: float) -> OssReport:
        """`now` is Unix time; `clock_s` is on a clock that does not jump."""
        elapsed_s = max(0.0, clock_s - self._clock_s) if self._clock_s is not None else 0.0
        self._clock_s = clock_s
        self._sequence += 1
        return OssReport(
            oss=f"ceph-{state.dump.fsid[:8]}",
            sequence=self._sequence,
            sent_s=now,
            interval_s=elapsed_s,
            cpu_load=0.0,
            memory_load=0.0,
            lnet_bytes_per_s=0.0,
            osts=tuple(self._targets(state, elapsed_s)),
            incarnation=self._incarnation,
        )

    def _targets(self, state: State, elapsed_s: float) -> Iterable[OstReport]:
        pools = {pool.pool: pool for pool in state.dump.pools}
        used = {of.id: of.stats for of in state.df.pools}
        osds = {rule.rule_id: _osds_of(rule, state.tree) for rule in state.rules}
        latency = {of.id: of.perf_stats.commit_latency_ms / 1e3 for of in state.perf.osdstats.osd_perf_infos}
        for fs in state.file_systems:
            taken: dict[frozenset[int], str] = {}
            default = pools.get(fs.data_pool_ids[0]) if fs.data_pool_ids else None
            for id in fs.data_pool_ids:
                if id not in pools or id not in used or id >= MAX_OSTS:
                    continue
                pool = pools[id]
                on = osds.get(pool.crush_rule, {})
                up = [o.osd for o in state.dump.osds if o.osd in on and o.up and o.inside]
                times = [latency[osd] for osd in up if osd in latency]
                commit_s = max(FASTEST_S, sum(times) / len(times)) if times else FASTEST_S
                counters = self._counted(id, used[id], commit_s, elapsed_s)
                target = _target(fs.name, pool, used[id], on, up, default, state.dump, counters)
                if not target.no_create and target.avail_bytes:
                    same = taken.setdefault(frozenset(on), pool.pool_name)
                    if same != pool.pool_name:
                        why = f"on the same OSDs as pool {same}: nothing is gained there"
                        target = msgspec.structs.replace(
                            target, no_create=True, degraded=False, why=why[:MAX_ID_CHARACTERS]
                        )
                yield target

    def _counted(self, id: int, used: _Used, commit_s: float, elapsed_s: float) -> IoCounters:
        """The pool's writes so far and their time: those of this interval took as long as commits on its OSDs do."""
        before, wr = self._writes.get(id), self._wr.get(id)
        self._wr[id] = used.wr
        if before is None or wr is None or used.wr < wr or elapsed_s <= 0:
            self._writes[id] = IoCounters(SOURCE, used.wr, used.wr_bytes, start_s=time.time())
            return self._writes[id]
        time_s = (used.wr - wr) * commit_s
        self._writes[id] = IoCounters(
            SOURCE,
            used.wr,
            used.wr_bytes,
            before.usecs + round(time_s * 1e6),
            before.flight_sum + round(_FLIGHTS * max(1.0, time_s / elapsed_s)),
            before.flight_samples + _FLIGHTS,
            before.start_s,
        )
        return self._writes[id]


def _target(
    fs_name: str,
    pool: _Pool,
    used: _Used,
    on: Mapping[int, str],
    up: list[int],
    default: _Pool | None,
    dump: _Dump,
    writes: IoCounters,
) -> OstReport:
    avail, total = max(0, used.max_avail), used.stored + max(0, used.max_avail)
    files_free = 2**32
    if pool.quota_max_bytes:
        total = min(total, pool.quota_max_bytes)
        avail = max(0, min(avail, pool.quota_max_bytes - used.stored))
    if pool.quota_max_objects:
        files_free = max(0, pool.quota_max_objects - used.objects)
    pool_flags, flags = set(pool.flags_names.split(",")), set(dump.flags.split(","))
    if pool_flags & {"full", "full_quota"}:
        avail = 0
    safe = _losses(pool, dump)
    safer = _losses(default, dump) if default else safe
    down = sorted(set(on) - set(up))
    why = ""
    if flags & {"full", "pausewr"}:
        why = f"the cluster's flags are {dump.flags}"
    elif len(up) < pool.min_size:
        why = f"{_named(down)} down or out, fewer than min_size {pool.min_size} left"
    elif safe < safer:
        why = f"it survives the loss of {counted(safe, 'OSD')}, the default pool of {safer}"
    refuses = bool(why)
    if not why and down:
        why = f"{_named(down)} down or out"
    elif not why and pool_flags & {"nearfull", "backfillfull"}:
        why = "an OSD of it is nearly full"
    classes = sorted(set(on.values()))
    kinds = {FLASH.get(name) for name in classes}
    return OstReport(
        fs_name=fs_name,
        index=pool.pool,
        total_bytes=max(1, total),
        free_bytes=avail,
        avail_bytes=avail,
        files_free=files_free,
        degraded=bool(why) and not refuses,
        no_create=refuses,
        write_bytes=used.wr_bytes,
        write_samples=used.wr,
        read_bytes=used.rd_bytes,
        counters_start_s=writes.start_s,
        writes=writes,
        nonrotational=kinds.pop() if len(kinds) == 1 else None,
        label=f"pool {pool.pool_name} ({', '.join([*classes, _named(sorted(on))])})"[:MAX_ID_CHARACTERS],
        why=why[:MAX_ID_CHARACTERS],
        default=default is not None and pool.pool == default.pool,
        width=max(1, len(up)) * _share(pool, dump),
    )


def _losses(pool: _Pool, dump: _Dump) -> int:
    """OSDs that may be lost with no data lost."""
    if not pool.erasure_code_profile:
        return pool.size - 1
    m = dump.erasure_code_profiles.get(pool.erasure_code_profile, {}).get("m", "0")
    return int(m) if m.isdecimal() else 0


def _share(pool: _Pool, dump: _Dump) -> float:
    """Of what the OSDs write, the data: without copies and coding chunks."""
    copies = max(1, pool.size)
    return max(1, copies - _losses(pool, dump)) / copies


def _named(osds: list[int]) -> str:
    return f"osd.{ranges.fold(osds)}" if osds else "no OSD"


def _osds_of(rule: _Rule, tree: _Tree) -> dict[int, str]:
    """The OSDs that a CRUSH rule takes from → their device class. `default~ssd` is the class ssd below `default`."""
    nodes = {node.id: node for node in tree.nodes}
    by_name = {node.name: node.id for node in tree.nodes}
    found: dict[int, str] = {}
    for step in rule.steps:
        if step.get("op") == "take":
            name, _, only = str(step.get("item_name", "")).partition("~")
            below = [by_name[name]] if name in by_name else []
            seen: set[int] = set()
            while below:
                node = nodes.get(below.pop())
                if node is None or node.id in seen:
                    continue
                seen.add(node.id)
                below += node.children
                if node.type == "osd" and (not only or node.device_class == only):
                    found[node.id] = node.device_class
    return found


def as_text(report: OssReport) -> str:
    """One line for each pool."""
    return "\n".join(
        f"{ost.fs_name} {ost.label}, id {ost.index}: {human_bytes(ost.avail_bytes)} left"
        + (f", {ost.why}" if ost.why else "")
        for ost in report.osts
    )


def configuration(root: str | Path, environ: Mapping[str, str]) -> str | None:
    """The ceph.conf by which this node is a client of Ceph; None: it is none."""
    path = Path(environ.get("CEPH_CONF") or Path(root) / "etc/ceph/ceph.conf")
    return str(path) if path.is_file() else None


class PoolWatch:
    """Asks the monitors in a thread: while they are silent nothing else waits. `newest` is the last report."""

    def __init__(self, conf: str, interval_s: Callable[[], float]) -> None:
        self.newest: OssReport | None = None
        self._conf = conf
        self._interval_s = interval_s
        self._pools = Pools()
        self._rados: Rados | None = None
        self._said = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tarazu-ceph", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            self.look()
            self._ended.wait(max(0.2, began + self._interval_s() - time.monotonic()))
        if self._rados is not None:
            self._rados.close()

    def look(self) -> None:
        """Once. What fails is said when it begins, and when it ends."""
        try:
            if self._rados is None:
                self._rados = Rados(CLIENT, self._conf)
            state = ask(self._rados.command)
            self.newest = self._pools.report(state, time.time(), time.monotonic())
            said = ""
        except RadosError as error:
            said = str(error)
            if self._rados is not None:
                self._rados.close()
                self._rados = None
        if said != self._said:
            log.warning("pools of Ceph are not reported: %s", said) if said else log.info(
                "Ceph answers again"
            )
            self._said = said


described(State)
