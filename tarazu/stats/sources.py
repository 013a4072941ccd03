"""What this node gives, source by source: where each parameter was found, whether it can be read, what was parsed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

import msgspec

from tarazu.stats import (
    arcstats,
    brw_stats,
    client,
    counters,
    diskstats,
    host,
    job_stats,
    lnet,
    mds,
    osp,
    reading,
)
from tarazu.stats.params import (
    PARAMETERS,
    barred,
    find,
    find_exports,
    find_in_pools,
    is_mdt,
    ost_target,
)
from tarazu.units import counted

ROLES = {
    "oss": ("obdfilter/*-OST*",),
    "mds": ("mdt/*-MDT*", "lod/*-MDT*", "osp/*-MDT*"),
    "client": ("llite/*",),
}
_NAMED = 3
"""Jobs, clients, rows that are named of one file."""
_SNIFFED_BYTES = 65536


class Source(msgspec.Struct, frozen=True):
    """One file, or a parameter of which no file was found."""

    parameter: str
    device: str
    path: str
    """Below the root; empty where nothing was found."""
    read: bool
    why: str = ""
    """It was not read."""
    form: str = ""
    """The version's form that was recognised by its content."""
    parsed: str = ""
    malformed: bool = False
    """It could be read, and is not as Lustre writes it."""


class Survey(msgspec.Struct, frozen=True):
    root: str
    roles: tuple[str, ...]
    """Of `oss`, `mds`, `client`; empty on a node without Lustre."""
    version: str
    """As Lustre itself says; empty where it does not."""
    sources: tuple[Source, ...]

    @property
    def missing(self) -> list[Source]:
        """What every supported version has and this node does not give."""
        return [s for s in self.sources if not s.read and (s.path or _expected(s.parameter))]


Reader = Callable[[Path], tuple[str, str]]
"""File → (form, what was parsed). Raises OSError or ValueError."""


def survey(root: str | Path = "/") -> Survey:
    """Everything that ossd and mdsd would read on this node. Never raises for what cannot be read."""
    roles = tuple(role for role, patterns in ROLES.items() if _has(Path(root), patterns))
    if "client" not in roles and client.mounts(root, {}):
        roles = (*roles, "client")
    sources: list[Source] = [_host(root), *_of_node(root, roles)]
    if "client" in roles:
        sources += _clients(root)
    return Survey(str(root), roles, _version(root), tuple(sources))


def _of_node(root: str | Path, roles: tuple[str, ...]) -> Iterable[Source]:
    for name, parameter in PARAMETERS.items():
        if parameter.role in roles or (parameter.role == "node" and {"oss", "mds"} & set(roles)):
            yield from _sources(Path(root), name) or [_nothing(root, name)]


def _expected(parameter: str) -> bool:
    return parameter not in PARAMETERS or PARAMETERS[parameter].expected


def _has(root: Path, patterns: Iterable[str]) -> bool:
    places = ("sys/fs/lustre", "proc/fs/lustre", "sys/kernel/debug/lustre")
    for place in places:
        for pattern in patterns:
            # glob raises for what may not be searched: debugfs, for an ordinary user
            with contextlib.suppress(OSError):
                if next((root / place).glob(pattern), None):
                    return True
    return False


def _version(root: str | Path) -> str:
    try:
        text = reading.text(Path(root) / "sys/fs/lustre/version")
    except (OSError, ValueError):
        return ""
    match = re.search(r"\d+(?:\.\d+)+\S{0,40}", text)
    return match[0] if match else ""


def _nothing(root: str | Path, parameter: str) -> Source:
    closed = barred(root, parameter)
    known = [v for v in PARAMETERS[parameter].places.values() if v[0].isdigit()]
    why = (
        f"no permission to look into {closed}"
        if closed
        else f"nothing found (Lustre {', '.join(known)} has it)"
    )
    return Source(parameter, "", "", False, why)


def _sources(root: Path, parameter: str) -> list[Source]:
    role = PARAMETERS[parameter].role
    if parameter == "obdfilter.*.exports.*.stats":
        return _exports(root, parameter)
    reader = READERS.get(parameter, _plain)
    if parameter == "lod.*.pools.*":
        return [
            _source(root, parameter, f"{device} {pool}", path, reader)
            for device, pool, path in find_in_pools(root, parameter)
        ]
    wanted = (
        ost_target
        if role == "oss" or parameter.startswith("osp.")
        else lambda d: is_mdt(d.partition("-mdtlov")[0])
    )
    return [
        _source(root, parameter, device, path, reader)
        for device, path in sorted(find(root, parameter).items())
        if not device or wanted(device)
    ]


def _source(root: Path, parameter: str, device: str, path: Path, reader: Reader) -> Source:
    below = str(path.relative_to(root) if path.is_relative_to(root) else path)
    try:
        form, parsed = reader(path)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Source(parameter, device, below, False, why, malformed=isinstance(error, ValueError))
    return Source(parameter, device, below, True, "", form, parsed)


def _exports(root: Path, parameter: str) -> list[Source]:
    of_ost: dict[str, list[tuple[str, Path]]] = {}
    for (device, nid), path in sorted(find_exports(root).items()):
        of_ost.setdefault(device, []).append((nid, path))
    sources = []
    for device, clients in of_ost.items():

        def read(path: Path, clients: list[tuple[str, Path]] = clients) -> tuple[str, str]:
            moved = []
            for nid, file in clients:
                stats = counters.parse(reading.text(file))
                moved.append((stats.row("write_bytes").sum + stats.row("read_bytes").sum, nid))
            most = ", ".join(f"{nid} {size} bytes" for size, nid in sorted(moved, reverse=True)[:_NAMED])
            return "", f"{counted(len(clients), 'client')}; most: {most}"

        sources.append(_source(root, parameter, device, clients[0][1], read))
    return sources


def _host(root: str | Path) -> Source:
    try:
        node = host.read(root)
    except (OSError, ValueError) as error:
        malformed = isinstance(error, ValueError)
        return Source("host", "", "proc/stat, proc/meminfo", False, str(error), malformed=malformed)
    arc = arcstats.reclaimable_bytes(root)
    zfs = f", ARC gives back {arc} bytes" if arc else ""
    busy = node.cpu.busy / node.cpu.total if node.cpu.total else 0.0
    parsed = f"CPU {busy:.0%} since boot, memory {node.memory_load:.0%}{zfs}"
    return Source("host", "", "proc/stat, proc/meminfo", True, "", "", parsed)


def _clients(root: str | Path) -> Iterable[Source]:
    for mount in client.mounts(root, {}):
        known = client.file_system(mount.fs_name, root)
        active = f"{len(known.active)} of {counted(len(known.osts), 'OST')} active"
        parsed = f"{mount.fs_name}: {active}, {counted(len(known.pools), 'pool')}"
        yield Source("mount", mount.path, "proc/mounts", True, "", "", parsed)


def _plain(path: Path) -> tuple[str, str]:
    return "", "".join(reading.text(path).strip().splitlines()[:1])[:60]


def _number(path: Path) -> tuple[str, str]:
    return "", str(counters.whole_number(reading.text(path)))


def _stats(path: Path) -> tuple[str, str]:
    stats = counters.parse(reading.text(path))
    form = "2.15 and later: start_time" if stats.start_s else "2.12 (or enable_stats_header=0): no start_time"
    if "obdfilter" in path.parts and stats.row("write_bytes").samples and not stats.row("write").sum:
        form += ", no times of requests"
    first = [
        f"{name} {row.samples} samples" + (f" sum {row.sum}" if row.sum else "")
        for name, row in stats.rows.items()
    ]
    return form, "; ".join(first[: 2 * _NAMED]) + ("; …" if len(first) > 2 * _NAMED else "")


def _job_stats(path: Path) -> tuple[str, str]:
    start = b"".join(islice(reading.chunks(path, job_stats.MAX_FILE_BYTES, _SNIFFED_BYTES), 1))
    if b", hist: {" in start:
        form = "2.16 and later: histograms"
    elif b"start_time:" in start:
        form = "2.15 and later: start_time"
    else:
        form = "2.12: no start_time" if b"snapshot_time:" in start else "no job"
    names, jobs = [], 0
    for entry in job_stats.entries(reading.chunks(path, job_stats.MAX_FILE_BYTES)):
        jobs += 1
        if jobs <= _NAMED:
            names.append(job_stats.unquote(job_stats.id_text(entry.partition(b"\n")[0])))
    return form, counted(jobs, "job") + (
        f": {', '.join(names)}{', …' if jobs > _NAMED else ''}" if jobs else ""
    )


def _brw_stats(path: Path) -> tuple[str, str]:
    stats = brw_stats.parse(reading.text(path))
    form = "2.15 and later: start_time" if stats.start_s else "2.12: no start_time"
    words = []
    for column, name in ((brw_stats.READS, "reads"), (brw_stats.WRITES, "writes")):
        io = stats.io(column)
        how = f"{io.ios} timed, {io.usecs / 1e6:.3f} s" if stats.timed(column) else "not timed"
        words.append(f"{stats.counted('disk I/O size', column)} {name} ({how})")
    return form, ", ".join(words)


def _lnet(path: Path) -> tuple[str, str]:
    values = lnet.parse(reading.text(path))
    sent, received, dropped = (
        "unknown" if name in values.unknown else getattr(values, name)
        for name in ("send_length", "recv_length", "drop_count")
    )
    return "", f"sent {sent} bytes, received {received}, dropped {dropped} messages"


def _diskstats(path: Path) -> tuple[str, str]:
    return "", f"{len(diskstats.parse(reading.text(path)))} devices"


def _pool(path: Path) -> tuple[str, str]:
    return "", counted(len(mds.parse_pool(reading.text(path))), "OST")


def _target_obd(path: Path) -> tuple[str, str]:
    rows = osp.parse_target_obd(reading.text(path))
    return "", f"{sum(active for _, active in rows)} of {counted(len(rows), 'OST')} active"


def _prealloc_status(path: Path) -> tuple[str, str]:
    why = osp.parse_prealloc_status(reading.text(path))
    return "", f"refuses: {why}" if why else "takes new objects"


READERS: dict[str, Reader] = {
    **dict.fromkeys(("obdfilter.*.stats", "ost.OSS.ost_io.stats", "mdt.*.md_stats"), _stats),
    **dict.fromkeys(("obdfilter.*.job_stats", "mdt.*.job_stats"), _job_stats),
    **{
        name: _number
        for name in PARAMETERS
        if name.rpartition(".")[2] in ("kbytestotal", "kbytesfree", "kbytesavail", "filestotal", "filesfree")
    },
    "osd-*.*.brw_stats": _brw_stats,
    "lnet.stats": _lnet,
    "diskstats": _diskstats,
    "lod.*.pools.*": _pool,
    "lod.*.target_obd": _target_obd,
    "osp.*.prealloc_status": _prealloc_status,
}
