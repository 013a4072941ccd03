"""An MDS's own weights of its OSTs beside those of the model of its allocator (`tarazu.allocate.lsa`), which says where
files would lie without tarazu.

The model is given what the MDS shows: space, penalties, tunables. Where it computes the same weights, and the same
penalty for each object, it is the allocator that runs here. Which files of which users come next nobody can tell.
It is imported where there is something to compare, for an OSS has no numpy.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tarazu.doctor.node import AS_ROOT, Finding, Node, ok, skip, warn
from tarazu.errors import BadInput
from tarazu.model import Ost, SystemView
from tarazu.stats import mds, qos_weights, reading
from tarazu.stats.osp import Osps
from tarazu.stats.params import barred, find, ost_target
from tarazu.stats.qos_weights import UNIT_BYTES, OstWeight

if TYPE_CHECKING:
    from tarazu.allocate.lsa import Lsa, Used

APART = 0.02
"""Of half of the OSTs, relative: by more the model is another allocator's. A few are apart whose space has changed."""
FRESH_S = 60.0
"""Since the last draw, within which the MDS has looked at all space: each 2 x `qos_maxage` while files are created."""
MOST_KIB = 2**44
"""Of one OST: no real one has more, and sums stay within 63 bits."""
MOST_PENALTY = 2**55
DEFAULTS = {"qos_prio_free": 90, "qos_threshold_rr": 17, "qos_maxage": 5}
"""What tarazu's own estimates suppose, as Lustre does where nobody has set them."""
NO_FILE = "no lod.*.qos_ost_weights below {root}: Lustre has it since 2.16, on an MDS, for root"


class Row(msgspec.Struct, frozen=True):
    """One OST. Weights and penalties are in units of 256 bytes; None: there is nothing to compare."""

    ost: int
    server: str
    avail_bytes: int
    """Now, as the MDS sees it."""
    weight: int | None
    """The MDS's, of its last draw."""
    model_weight: int | None
    """The model's, from the space and the penalties of that draw."""
    per_object: int
    """What an object adds to the penalty; the MDS's."""
    model_per_object: int
    server_per_object: int
    model_server_per_object: int
    share: float | None
    """Of files with one stripe that come next, by the MDS's weights."""
    model_share: float
    """The same by the model, with space and penalties as they are now."""
    rest_share: float
    """The same without penalties: as tarazu supposes it of a job that comes."""


class Comparison(msgspec.Struct, frozen=True):
    """All OSTs of an MDT, or those of a pool."""

    device: str
    pool: str
    tunables: Mapping[str, int]
    round_robin: bool
    """By the model: space is so even that weights are not used."""
    spread: float
    """(largest - smallest) / largest available space."""
    drawn_s: float | None
    """Seconds since OSTs were last drawn by weight; None: never."""
    weight_apart: float | None
    """Relative difference of the weights of the OST in the middle; None: nothing was drawn, or it goes round now."""
    per_object_apart: float | None
    """The same of what an object adds; None: the MDS has not computed it, or no space is known."""
    elsewhere: float | None
    """Share of the next files that the MDS's weights put on other OSTs than the model's do."""
    agrees: bool | None
    """None: it cannot be told, for the MDS has not looked at space lately, or never."""
    rows: tuple[Row, ...]

    @property
    def space_known(self) -> bool:
        """Of any OST."""
        return any(row.avail_bytes for row in self.rows)


def comparisons(root: str | Path, now_s: float | None = None, *, only: str | None = None) -> list[Comparison]:
    """Of every MDT and pool below `root`; empty where the file is not there. now_s: of the MDS's clock; None: its last
    draw, for a copy of a node's files. only: this pool, "" for all OSTs.

    Raises BadInput for a file that cannot be read.
    """
    files = {of: _read(path) for of, path in sorted(qos_weights.files(root).items())}
    tunables = mds.read(root).qos
    known = _osts(root)
    found = []
    for (device, pool), members in files.items():
        if not members or only not in (None, pool):
            continue
        mine = {name: _number(tunables.get(device, {}).get(name, ""), d) for name, d in DEFAULTS.items()}
        mdt = device.removesuffix("-mdtlov")
        osts = {index: ost for (fs, name, index), ost in known.items() if f"{fs}-{name}" == mdt}
        others = {p: frozenset(w.ost for w in of) for (d, p), of in files.items() if p and d == device}
        seen = _Seen(files.get((device, "")) or members, osts, mine, others)
        there = {w.ost for w in seen.weights}
        if members := [w for w in members if w.ost in there]:  # one may have come meanwhile
            found.append(_compare(device, pool, seen, members, now_s))
    return found


def look(node: Node) -> Iterator[Finding]:
    """One finding for each MDT of the node, where its Lustre shows weights."""
    if not qos_weights.files(node.root):
        if not node.is_root and barred(node.root, qos_weights.ALL):
            yield skip("allocator", "this user cannot read lod.*.qos_ost_weights", AS_ROOT)
        return
    try:
        found = comparisons(node.root, time.time() if node.is_here else None, only="")
    except BadInput as error:
        yield warn("allocator", f"cannot be compared: {error}", "lctl get_param lod.*.qos_ost_weights")
        return
    for each in found:
        if each.agrees is None:
            yield skip(f"allocator of {each.device}", verdict(each))
        elif each.agrees:
            yield ok(f"allocator of {each.device}", verdict(each))
        else:
            mend = "`tarazu doctor allocator` shows each OST; report it to tarazu's developers"
            yield warn(f"allocator of {each.device}", verdict(each), mend)


def verdict(of: Comparison) -> str:
    """Whether the model is this MDS's allocator, and how sure that is."""
    if not of.space_known:
        return "the available space of its OSTs is not known (osp.*.kbytesavail), so nothing can be compared"
    named = (("weights", of.weight_apart), ("penalties for each object", of.per_object_apart))
    apart = ", ".join(f"{what} are {value:.1%} apart" for what, value in named if value is not None)
    apart = f"{apart} (of the OST in the middle)" if apart else "there is nothing to compare"
    mode = "round robin" if of.round_robin else "by weight"
    if of.agrees is None:
        return f"{mode}; whether the model computes as this MDS cannot be told, which has not weighed lately: {apart}"
    return f"{mode}; the model {'computes as' if of.agrees else 'DIFFERS from'} this MDS: {apart}"


def _read(path: Path) -> list[OstWeight]:
    try:
        return qos_weights.read(path)
    except (OSError, ValueError) as error:
        found = error.strerror if isinstance(error, OSError) else error
        raise BadInput(str(path), "the MDS's own weights of its OSTs", str(found)) from None


class _Seen(NamedTuple):
    """What one MDT shows of its OSTs."""

    weights: Sequence[OstWeight]
    osts: Mapping[int, Ost]
    tunables: Mapping[str, int]
    pools: Mapping[str, frozenset[int]]

    def now(self) -> list[Ost]:
        """As the MDS sees them; where only the weight is known, as of that."""
        return [
            msgspec.structs.replace(
                self.osts.get(w.ost) or _ost(w),
                oss=w.server,
                pools=tuple(name for name, members in self.pools.items() if w.ost in members),
            )
            for w in self.weights
        ]

    def then(self) -> list[Ost]:
        """The same with the space that they had when they were weighed last."""
        return [
            msgspec.structs.replace(ost, avail_bytes=_ost(w).avail_bytes) if w.avail else ost
            for ost, w in zip(self.now(), self.weights, strict=True)
        ]

    def model(
        self, osts: Sequence[Ost], now_s: float = 0.0, *, loaded: bool = True, ageing: bool = True
    ) -> Lsa:
        """The allocator with these OSTs; loaded: with the MDS's penalties."""
        from tarazu.allocate.lsa import Lsa, Used

        model = Lsa(
            SystemView("", now_s, tuple(osts)),
            threshold_rr=self.tunables["qos_threshold_rr"],
            prio_free=self.tunables["qos_prio_free"],
            maxage_s=max(1, self.tunables["qos_maxage"]),
        )

        def used(penalty: int, last_s: int) -> Used:
            return Used(min(penalty, MOST_PENALTY), min(last_s, now_s) if ageing else now_s)

        if loaded:
            model.take_over(
                {w.ost: used(w.penalty, w.last_used_s) for w in self.weights},
                {w.server: used(w.server_penalty, w.server_last_used_s) for w in self.weights},
                now_s,
            )
        model.weights()
        return model


def _compare(
    device: str, pool: str, seen: _Seen, members: Sequence[OstWeight], now_s: float | None
) -> Comparison:
    from tarazu.allocate import lsa

    drawn_s = max(w.last_used_s for w in members)
    now = float(drawn_s if now_s is None else max(now_s, drawn_s))
    osts, indices = seen.now(), {w.ost for w in members}
    drawn = seen.model(seen.then(), drawn_s, ageing=False)
    next_ = seen.model(osts, now)
    per_object, per_server = _per_object(seen, (drawn, next_))
    replayed = drawn.weights(pool)
    here = [o for o in osts if o.index in indices]
    space = {o.index: o.avail_bytes for o in here}
    round_robin = lsa.goes_round(here, seen.tunables["qos_threshold_rr"])
    shares = _shares(next_.weights(pool), round_robin)
    at_rest = _shares(seen.model(osts, loaded=False).weights(pool), round_robin)
    theirs = _shares({w.ost: min(w.weight, MOST_PENALTY) for w in members if w.ost in shares}, round_robin)

    def weighed(w: OstWeight) -> bool:
        """A round robin forgets penalties and leaves weights as they are."""
        return not round_robin and bool(drawn_s and w.avail) and w.ost in replayed

    rows = [
        Row(
            w.ost,
            w.server,
            space[w.ost],
            w.weight if weighed(w) else None,
            replayed[w.ost] if weighed(w) else None,
            w.penalty_per_object,
            _nearest(w.penalty_per_object, (of[w.ost] for of in per_object if w.ost in of)),
            w.server_penalty_per_object,
            _nearest(w.server_penalty_per_object, (of[w.server] for of in per_server if w.server in of)),
            theirs.get(w.ost, 0.0) if drawn_s or round_robin else None,
            shares.get(w.ost, 0.0),
            at_rest.get(w.ost, 0.0),
        )
        for w in members
    ]
    weights = [
        _apart(r.weight, r.model_weight) for r in rows if r.weight is not None and r.model_weight is not None
    ]
    weight_apart = median(weights) if weights else None
    # What is 0 the MDS has not computed yet, as where only pools get files; what takes no objects it leaves as it was.
    known = {o.index for o in osts if o.usable and o.avail_bytes}
    penalties = [
        [_apart(*pair) for row, pair in zip(rows, of, strict=True) if pair[0] and row.ost in known]
        for of in (
            [(r.per_object, r.model_per_object) for r in rows],
            [(r.server_per_object, r.model_server_per_object) for r in rows],
        )
    ]
    per = max((median(of) for of in penalties if of), default=None)
    apart = [one for one in (weight_apart, per) if one is not None]
    fresh = bool(drawn_s) and not round_robin and now - drawn_s <= FRESH_S
    usable = [o.avail_bytes for o in here if o.usable]
    return Comparison(
        device,
        pool,
        seen.tunables,
        round_robin,
        1 - min(usable) / max(usable) if any(usable) else 0.0,
        now - drawn_s if drawn_s else None,
        weight_apart,
        per,
        sum(abs((r.share or 0.0) - r.model_share) for r in rows) / 2 if drawn_s or round_robin else None,
        True if apart and max(apart) <= APART else False if fresh else None,
        tuple(sorted(rows, key=lambda r: r.ost)),
    )


def _per_object(seen: _Seen, models: Sequence[Lsa]) -> tuple[list[dict[int, int]], list[dict[str, int]]]:
    """What an object adds to penalties of OSTs and of servers: by all OSTs, as each of these models has it, and by each
    pool, for the last one that had a component has left its own behind.
    """
    of_osts = [m.per_object()[0] for m in models]
    of_servers = [m.per_object()[1] for m in models]
    for space in (seen.then(), seen.now()):
        model = seen.model(space, loaded=False)
        for pool, members in seen.pools.items():
            model.weights(pool)
            of_pool = model.per_object()[0]
            of_osts.append({ost: of_pool[ost] for ost in members if ost in of_pool})
    return of_osts, of_servers


def _shares(weights: Mapping[int, int], round_robin: bool) -> dict[int, float]:
    """Where no OST has any weight the first one is taken."""
    total = sum(weights.values())
    if round_robin:
        return dict.fromkeys(weights, 1 / max(1, len(weights)))
    if not total:
        return {ost: float(i == 0) for i, ost in enumerate(weights)}
    return {ost: weight / total for ost, weight in weights.items()}


def _nearest(wanted: int, values: Iterable[int]) -> int:
    return min(values, key=lambda value: abs(value - wanted), default=0)


def _apart(theirs: int, ours: int) -> float:
    return abs(theirs - ours) / max(theirs, ours, 1)


def _ost(of: OstWeight) -> Ost:
    bytes_ = min(of.avail * UNIT_BYTES, MOST_KIB * 1024)
    return Ost(of.ost, of.server, bytes_, bytes_, bytes_)


def _osts(root: str | Path) -> dict[tuple[str, str, int], Ost]:
    """(file system, MDT, index) → the OST as that MDT's connection to it shows it."""
    amiss = Osps(root).look()
    refusing = {*amiss.full, *amiss.refusing}
    totals = find(root, "osp.*.kbytestotal")
    states = find(root, "osp.*.statfs_state")
    osts = {}
    for device, path in find(root, "osp.*.kbytesavail").items():
        target = ost_target(device)
        avail = _kib(path)
        if target is None or avail is None:
            continue
        total = max(avail, (_kib(totals[device]) if device in totals else None) or 0)
        state = _text(states[device]) if device in states else ""
        osts[(target[0], device.rpartition("-")[2], target[1])] = Ost(
            target[1],
            "",
            total * 1024,
            avail * 1024,
            avail * 1024,
            degraded="D" in state,
            no_create=target in refusing or bool(set("NSI") & set(state)),
            readonly="R" in state,
        )
    return osts


def _kib(path: Path) -> int | None:
    text = _text(path)
    return (
        int(text)
        if text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= MOST_KIB
        else None
    )


def _text(path: Path) -> str:
    try:
        return reading.text(path, reading.SMALL_BYTES).strip()
    except (OSError, ValueError):
        return ""


def _number(text: str, default: int) -> int:
    """`91%`, `5`, `5 Sec`; the default where it is none of these."""
    digits = text.removesuffix("%").removesuffix(" Sec").strip()
    return (
        int(digits)
        if digits.isascii() and digits.isdecimal() and len(digits) <= 4 and int(digits) <= 3600
        else default
    )
