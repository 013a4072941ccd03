"""Soft drain: which OSTs Lustre's own allocator should leave out for a while, and which parameters tell it so.

Works for all clients and needs no placement library. The parameters, from soft to hard:

- `obdfilter.*.degraded=1` (2.12 and later, on the OSS): the MDS takes the OST only when others do not suffice.
- `osp.*.max_create_count=0` (on the MDS) and `obdfilter.*.no_create=1` (2.16.1 and later, on the OSS): no new
  objects at all. A progressive file that was created with a list of OSTs and has not reached a later component
  yet cannot be written there while one of them refuses; so these are set only when asked for, or where
  `degraded` is not to be had (on the MDS).

`lever.py` sets them and takes them back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import floor
from typing import NamedTuple

import msgspec

from tarazu.errors import BadInput
from tarazu.model import Ost, SystemView
from tarazu.ost_state import HOT_LOAD, NEARLY_FULL, UNKNOWN, UNUSABLE, Verdict
from tarazu.stats.params import ost_target


class DrainParameter(NamedTuple):
    """One of the parameters that drain."""

    parameter: str
    """As `tarazu.stats.params` knows it."""
    drains: int
    """The value that drains."""
    before: range
    """What it can be otherwise: of `max_create_count` what Lustre takes (osp_internal.h, OST_MIN_PRECREATE to
    OST_MAX_PRECREATE).
    """


PARAMETERS = {
    "degraded": DrainParameter("obdfilter.*.degraded", 1, range(1)),
    "no_create": DrainParameter("obdfilter.*.no_create", 1, range(1)),
    "max_create_count": DrainParameter("osp.*.max_create_count", 0, range(32, 20_001)),
}
DEFAULT = ("degraded", "max_create_count")


class Candidate(msgspec.Struct, frozen=True):
    """An OST that should be drained, or would be if the share allowed it."""

    ost: int
    oss: str
    why: str
    severity: float
    """Times slower than the others; for a hot server, its load; 0 for one that was named."""
    held_back: bool
    """True for one that the share does not allow."""


def candidates(view: SystemView, share: float) -> list[Candidate]:
    """Sick and hot OSTs, the worst first; at most `share` of all OSTs are out at a time, those that already
    are included.
    """
    here = [o for o in view.osts if o.verdict not in UNKNOWN]
    allowed = _allowed(view, share)
    loads = {o.name: max(o.cpu_load, o.memory_load) for o in view.osses}
    troubled = []
    for ost in here:
        if _is_out(ost):
            continue
        judged = _judge(ost, loads.get(ost.oss, 0.0))
        if judged:
            troubled.append((*judged, ost))
    troubled.sort(key=lambda f: (-f[0], f[2].index))
    return [
        Candidate(ost.index, ost.oss, why, severity, held_back=i >= allowed)
        for i, (severity, why, ost) in enumerate(troubled)
    ]


def named(view: SystemView, share: float, osts: Sequence[int]) -> list[Candidate]:
    """Those that somebody names, in his order, whatever they are like; the share holds for them too. One that is out
    already may be drained by another parameter. Raises BadInput for an OST that there is not.
    """
    known = {o.index: o for o in view.osts}
    if missing := sorted(set(osts) - set(known)):
        raise BadInput("--ost", f"OSTs of {view.fs_name}, 0 to {max(known, default=0)}", missing)
    allowed = _allowed(view, share)
    chosen = []
    for ost in (known[index] for index in dict.fromkeys(osts)):
        takes = not _is_out(ost)
        chosen.append(Candidate(ost.index, ost.oss, "named", 0.0, held_back=takes and allowed < 1))
        allowed -= takes
    return chosen


def as_set(view: SystemView, values: Mapping[str, str], held: Collection[str] = ()) -> SystemView:
    """The view with what one node has now. It is older: what was set in the last seconds is not in it. `values`:
    parameter with its device → value there; `held`: those that the node has drained, also while their device is away.
    """
    flags: dict[int, dict[str, bool]] = {}
    for full_name in {*values, *held}:
        device, _, name = full_name.partition(".")[2].rpartition(".")
        target = ost_target(device)
        if target is None or target[0] != view.fs_name or name not in PARAMETERS:
            continue
        drained = values[full_name].strip() == str(PARAMETERS[name].drains) if full_name in values else True
        of_ost = flags.setdefault(target[1], {})
        if name != "max_create_count":
            of_ost[name] = drained
        elif drained:  # where one MDT makes nothing more, as if nobody did
            of_ost["closed"] = True
    osts = []
    for ost in view.osts:
        of_ost = flags.get(ost.index, {})
        degraded = of_ost.get("degraded", ost.degraded)
        no_create = of_ost.get("closed", of_ost.get("no_create", ost.no_create))
        osts.append(msgspec.structs.replace(ost, degraded=degraded, no_create=no_create))
    return msgspec.structs.replace(view, osts=tuple(osts))


def too_full(osts: Sequence[Ost], out: Collection[int] = ()) -> float:
    """By how much of their space the OSTs that get new files are more than nearly full, all together; 1 where there is
    none. `out`: OSTs that get none beside those that do not already.
    """
    takers = [o for o in osts if o.index not in out and not _is_out(o) and o.verdict not in UNUSABLE]
    if not takers:
        return 1.0
    total = sum(o.total_bytes for o in takers)
    used = sum(o.used_bytes for o in takers) / total if total else 0.0
    return round(max(0.0, used - NEARLY_FULL), 4)


def limit(share: float, osts: int) -> str:
    """Why one is held back: `--share 0.1 of 35 OSTs lets 3 be out`."""
    return f"--share {share:g} of {osts} OSTs lets {_most(share, osts) or 'none'} be out"


def _most(share: float, osts: int) -> int:
    return floor(share * osts + 1e-9)


def _allowed(view: SystemView, share: float) -> int:
    out = [o for o in view.osts if _is_out(o)]
    return max(0, _most(share, len(view.osts)) - len(out))


def _is_out(ost: Ost) -> bool:
    return ost.degraded or not ost.usable


def _judge(ost: Ost, load: float) -> tuple[float, str] | None:
    """(severity, reason), or None for an OST that is well."""
    state = ost.judged
    if state.verdict is Verdict.SICK and ost.relative_speed:
        by = f" ({state.source})" if state.source else ""
        why = ost.slow_why or f"{1 / ost.relative_speed:.1f} times slower than its peers"
        return 1 / ost.relative_speed, f"sick: {why}{by}"
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
