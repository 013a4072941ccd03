"""Soft drain: which OSTs Lustre's own allocator should leave out for a while, and how to tell it so.

Works for all clients and needs no placement library. What is set is remembered in a state file, and only that
is undone. The parameters, from soft to hard:

- `obdfilter.*.degraded=1` (2.12 and later, on the OSS): the MDS takes the OST only when others do not suffice.
- `osp.*.max_create_count=0` (on the MDS) and `obdfilter.*.no_create=1` (2.16.1 and later, on the OSS): no new
  objects at all. A progressive file that was created with a list of OSTs and has not reached a later component
  yet cannot be written there while one of them refuses; so these are set only when asked for, or where
  `degraded` is not to be had (on the MDS).
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from math import floor
from pathlib import Path
from statistics import median

import msgspec

from tarazu.errors import BadInput, StoreError, Unavailable
from tarazu.malformed import MALFORMED
from tarazu.model import Ost, SystemView
from tarazu.stats.params import find, ost_target

SICK_SPEED = 0.25
"""Share of its peers' speed below which an OST is sick."""
SICK_LATENCY = 4.0
"""Times the median write latency from which it is, where the throughput is unknown."""
HOT_LOAD = 0.95
"""Load of its server from which an OST is hot."""

PARAMETERS = {
    "degraded": ("obdfilter.*.degraded", 1),
    "no_create": ("obdfilter.*.no_create", 1),
    "max_create_count": ("osp.*.max_create_count", 0),
}
"""Name → (parameter as `tarazu.stats.params` knows it, the value that drains)."""
DEFAULT = ("degraded", "max_create_count")


class Candidate(msgspec.Struct, frozen=True):
    """An OST that should be drained, or would be if the share allowed it."""

    ost: int
    oss: str
    why: str
    severity: float
    """Times slower than the others; for a hot server, its load."""
    held_back: bool
    """True for one that the share does not allow."""


class Change(msgspec.Struct, frozen=True):
    """One parameter that was set."""

    parameter: str
    """As `lctl` names it, with the device."""
    path: str
    before: int
    after: int
    at_s: float


def candidates(view: SystemView, share: float) -> list[Candidate]:
    """Sick and hot OSTs, the worst first; at most `share` of all OSTs are out at a time, those that already
    are included.
    """
    here = [o for o in view.osts if o.active and not o.stale]
    out = [o for o in view.osts if o.degraded or not o.usable]
    allowed = max(0, floor(share * len(view.osts) + 1e-9) - len(out))
    speeds = [o.write_bytes_per_s for o in here if o.write_bytes_per_s]
    latencies = [o.write_latency_s for o in here if o.write_latency_s]
    usual_speed = median(speeds) if speeds else 0.0
    usual_latency = median(latencies) if latencies else 0.0
    loads = {o.name: max(o.cpu_load, o.memory_load) for o in view.osses}
    found = []
    for ost in here:
        if ost.degraded or not ost.usable:
            continue
        judged = _judge(ost, usual_speed, usual_latency, loads.get(ost.oss, 0.0))
        if judged:
            found.append((*judged, ost))
    found.sort(key=lambda f: (-f[0], f[2].index))
    return [
        Candidate(ost.index, ost.oss, why, severity, held_back=i >= allowed)
        for i, (severity, why, ost) in enumerate(found)
    ]


def _judge(ost: Ost, usual_speed: float, usual_latency: float, load: float) -> tuple[float, str] | None:
    """(severity, reason), or None for an OST that is well."""
    if ost.write_bytes_per_s:
        relative = ost.relative_speed or ost.write_bytes_per_s / usual_speed
        if relative < SICK_SPEED:
            by = f" ({ost.speed_source})" if ost.speed_source else ""
            return 1 / relative, f"sick: {1 / relative:.1f} times slower than its peers{by}"
    elif ost.write_latency_s and ost.write_latency_s > SICK_LATENCY * usual_latency:
        times = ost.write_latency_s / usual_latency
        return times, f"sick: write latency {times:.1f} times the median"
    if load >= HOT_LOAD:
        return load, f"hot: load of its server is {load:.2f}"
    return None


def commands(fs_name: str, ost: int) -> dict[str, str]:
    """Name → the `lctl` command that drains one OST; what the name starts with says where it is run."""
    target = f"{fs_name}-OST{ost:04x}"
    return {
        "degraded": f"lctl set_param obdfilter.{target}.degraded=1",
        "no_create": f"lctl set_param obdfilter.{target}.no_create=1",
        "max_create_count": f"lctl set_param osp.{target}-osc-MDT*.max_create_count=0",
    }


def here(root: str | Path, names: Sequence[str] = DEFAULT) -> dict[str, list[tuple[str, Path]]]:
    """Name → (device, file) of the parameters that this node has below `root`.

    Raises Unavailable when it has none of them: no server, or nothing mounted.
    """
    found = {name: sorted(find(root, PARAMETERS[name][0]).items()) for name in names}
    if not any(found.values()):
        wanted = " or ".join(PARAMETERS[name][0] for name in names)
        raise Unavailable(f"{root}: expected {wanted} of a Lustre server, found none")
    return found


def apply(
    fs_name: str, osts: Sequence[int], root: str | Path, state: Path, names: Sequence[str] = DEFAULT
) -> list[Change]:
    """Drain those of `osts` that this node serves (OSS) or knows (MDS). What is set already stays others'.

    Each change is in the state file before it is made. Raises Unavailable, StoreError, BadInput.
    """
    wanted = {(fs_name, ost) for ost in osts}
    remembered = read_state(state)
    made: list[Change] = []
    for name, devices in here(root, names).items():
        parameter, value = PARAMETERS[name]
        for device, path in devices:
            before = _read(path)
            if ost_target(device) not in wanted or before is None or before == value:
                continue
            change = Change(parameter.replace("*", device), str(path), before, value, time.time())
            _write_state(state, [*remembered, *made, change])
            _set(path, value)
            made.append(change)
    return made


def undo(state: Path) -> tuple[list[Change], list[tuple[Change, str]]]:
    """Restore what `apply` changed, the newest first: (restored, left alone and why).

    A parameter that someone else has changed since is theirs and forgotten; one that is not to be found now
    (its target runs on another server) stays in the state file.
    """
    restored: list[Change] = []
    left: list[tuple[Change, str]] = []
    keep: list[Change] = []
    for change in reversed(read_state(state)):
        path = Path(change.path)
        now = _read(path)
        if now is None:
            left.append((change, "cannot be read here now; remembered"))
            keep.insert(0, change)
        elif now == change.after:
            _set(path, change.before)
            restored.append(change)
        elif now != change.before:
            left.append((change, f"is {now} now, set by someone else"))
    _write_state(state, keep)
    return restored, left


def read_state(state: Path) -> list[Change]:
    """What was changed and not undone. Raises StoreError for a file that is not ours."""
    try:
        return msgspec.json.decode(state.read_bytes(), type=list[Change])
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(str(state), "a readable state file", error.strerror) from None
    except MALFORMED as error:
        raise StoreError(str(state), "the state of tarazu drain", str(error)) from None


def _write_state(state: Path, changes: Sequence[Change]) -> None:
    try:
        if not changes:
            state.unlink(missing_ok=True)
            return
        state.parent.mkdir(parents=True, exist_ok=True)
        temporary = state.with_name(state.name + ".new")
        with temporary.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(list(changes))) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(state)
    except OSError as error:
        raise StoreError(str(state), "a state file that can be written", error.strerror) from None


def _read(path: Path) -> int | None:
    try:
        return int(path.read_text().strip())
    except (OSError, ValueError):
        return None


def _set(path: Path, value: int) -> None:
    """Parameters are files of the kernel: written in place, never created. Raises BadInput."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, f"{value}\n".encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise BadInput(str(path), f"a parameter that can be set to {value}", error.strerror) from None
    if _read(path) != value:
        raise BadInput(str(path), f"{value} after it was set", _read(path))
