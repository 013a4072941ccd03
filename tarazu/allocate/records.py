"""What happens to the reservation ledger, as records: written to its log, sent to a standby, applied in this order.

Replay is deterministic: what time brings about (expiry, release, death) is a record of its own and carries its time, on
the ledger's clock. A record that was once written is read for ever: new fields come last and with a default, a new kind
gets a new tag.
"""

from __future__ import annotations

import math
import operator
import sys
from array import array
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from tarazu.allocate.ledger import Dead, Ledger, Promise, Stripes

Number = TypeVar("Number", int, float)

REMEMBER_S = 600.0
"""How long the end of a step that has no promise is remembered: its request may still be on the way."""
BESIDE = "beside "
"""Before the id of a promise that was made for the same request, by another mdsd; it ends with it."""
LATEST_S = 2.0**40
"""No time is later; in seconds."""


class Promised(msgspec.Struct, frozen=True, array_like=True, tag="promised"):
    """An allocation was made, and answered with this reply."""

    id: str
    fs_name: str
    uid: int
    at_s: float
    expires_at_s: float
    alive_s: float
    """0: silence means nothing."""
    osts: bytes
    """u16, little-endian: OST indices of all stripes."""
    sizes: bytes
    """u64: their bytes."""
    starts: bytes
    """u32: the stripes of file i are `starts[i]` to `starts[i + 1]`."""
    reply: bytes
    """As it was sent."""
    keep_until_s: float


class Replied(msgspec.Struct, frozen=True, array_like=True, tag="replied"):
    """A request was answered with something else than promises."""

    id: str
    uid: int
    reply: bytes
    keep_until_s: float


class Closed(msgspec.Struct, frozen=True, array_like=True, tag="closed"):
    """Files were closed at these sizes."""

    id: str
    at_s: float
    release_at_s: float
    files: tuple[tuple[int, int], ...]
    """(index in the request, bytes)."""


class Ended(msgspec.Struct, frozen=True, array_like=True, tag="ended"):
    """The job step is over."""

    id: str
    at_s: float


class Revoked(msgspec.Struct, frozen=True, array_like=True, tag="revoked"):
    """A promise whose reply never left is as if it had not been made."""

    id: str


class Died(msgspec.Struct, frozen=True, array_like=True, tag="died"):
    """These job steps were silent for too long."""

    ids: tuple[str, ...]
    at_s: float


class Heard(msgspec.Struct, frozen=True, array_like=True, tag="heard"):
    """A job step that counted as dead reports again."""

    id: str
    at_s: float


class Passed(msgspec.Struct, frozen=True, array_like=True, tag="passed"):
    """So late it is: what expires or is due for release by then has."""

    at_s: float


class Marked(msgspec.Struct, frozen=True, array_like=True, tag="marked"):
    """What the ledger's clock and the node's clocks showed at one moment (`daemons/mdsd/ledger_clock.py`)."""

    at_s: float
    boot_id: str
    boottime_s: float
    unix_s: float


class Held(msgspec.Struct, frozen=True, array_like=True, tag="held"):
    """In a snapshot: a promise as it is; that of a dead step as it was before its death."""

    id: str
    fs_name: str
    uid: int
    expires_at_s: float
    alive_s: float
    deaths: int
    osts: bytes
    sizes: bytes
    starts: bytes
    """As in `Promised`."""
    release_s: bytes
    """f64: when the bytes of each file are released; +inf for an open file, -inf for one that promises nothing."""


class Over(msgspec.Struct, frozen=True, array_like=True, tag="over"):
    """In a snapshot: ids whose steps ended, and until when that is remembered; in the order of their ends."""

    ids: tuple[tuple[str, float], ...]


class Alone(msgspec.Struct, frozen=True, array_like=True, tag="alone"):
    """From here on one of two mdsds answers without the other knowing (`tarazu.allocate.alone`)."""

    term: int
    at_s: float
    doubted: bool = False
    """The other one may not even know what was promised last before."""


class Joined(msgspec.Struct, frozen=True, array_like=True, tag="joined"):
    """From here on the other one follows: it knows all that was promised."""

    term: int
    at_s: float


class Counted(msgspec.Struct, frozen=True, array_like=True, tag="counted"):
    """In a snapshot: what counts a second time until then."""

    fs_name: str
    until_s: float
    osts: bytes
    sizes: bytes
    """As in `Promised`."""
    ids: dict[str, float]
    """Promises made alone, and when they lapse."""


class Recent(msgspec.Struct, frozen=True, array_like=True, tag="recent"):
    """In a snapshot: the promises made last, and when, while the other one followed."""

    ids: dict[str, float]


class HeardInSnapshot(msgspec.Struct, frozen=True, array_like=True, tag="told"):
    """In a snapshot: what was heard while alone of a promise from before."""

    id: str
    closed: tuple[tuple[int, int, float], ...]
    """(index in the request, bytes, time of release)."""
    ended_s: float | None


Record = (
    Promised
    | Replied
    | Closed
    | Ended
    | Revoked
    | Died
    | Heard
    | Passed
    | Marked
    | Held
    | Over
    | Alone
    | Joined
    | Counted
    | Recent
    | HeardInSnapshot
)


def apply(ledger: Ledger, record: Record, heard_s: float) -> list[Dead]:
    """What a record does to the ledger; who died of it. `heard_s`: when restored steps count as heard.

    Raises ValueError for a record whose parts do not fit together; nothing is changed then.
    """
    _check_times(record)
    match record:
        case Promised():
            ledger.promise(
                record.id,
                record.fs_name,
                record.expires_at_s,
                stripes_of(record),
                uid=record.uid,
                alive_s=record.alive_s,
                now=record.at_s,
            )
        case Closed():
            for index, size_bytes in record.files:
                ledger.closed(record.id, index, size_bytes, record.at_s, record.release_at_s)
        case Ended():
            ledger.ended(record.id)
            ledger.ended(BESIDE + record.id)
            ledger.remember(record.id, record.at_s + REMEMBER_S)
        case Revoked():
            ledger.revoke(record.id)
        case Died():
            dead = ledger.die(record.ids, record.at_s)
            ledger.die([BESIDE + id for id in record.ids], record.at_s)
            return dead
        case Heard():
            ledger.revive(record.id, record.at_s)
            ledger.revive(BESIDE + record.id, record.at_s)
        case Passed():
            ledger.expire(record.at_s)
        case Held():
            _hold(ledger, record, heard_s)
        case Over():
            for id, until_s in record.ids:
                ledger.remember(id, until_s)
    return []


def state(ledger: Ledger) -> Iterator[Record]:
    """Records that make an empty ledger equal to this one, in all that records change."""
    dead = ledger.dead()
    for id, promise in ledger.promises():
        yield held(id, promise)
    if dead:
        yield Died(dead, 0.0)
    if over := tuple(ledger.over()):
        yield Over(over)


def held(id: str, promise: Promise) -> Held:
    """A promise as it is."""
    return Held(
        id,
        promise.fs_name,
        promise.uid,
        promise.expires_at_s,
        promise.alive_s,
        promise.deaths - promise.dead,
        *packed(promise.stripes),
        little_endian(promise.release_s).tobytes(),
    )


def packed(stripes: Stripes) -> tuple[bytes, bytes, bytes]:
    """`osts`, `sizes`, `starts` of a record."""
    osts, sizes, starts = (little_endian(values).tobytes() for values in stripes)
    return osts, sizes, starts


def stripes_of(record: Promised | Held) -> Stripes:
    """Raises ValueError for lengths that do not fit together."""
    osts, sizes, starts = array("H", record.osts), array("Q", record.sizes), array("I", record.starts)
    stripes = Stripes(little_endian(osts), little_endian(sizes), little_endian(starts))
    starts = stripes.starts
    rising = all(map(operator.le, starts, starts[1:]))
    if not starts or starts[0] or starts[-1] != len(osts) or len(osts) != len(sizes) or not rising:
        raise ValueError(f"{record.id}: expected {len(osts)} sizes and a start for each file")
    return stripes


def _hold(ledger: Ledger, record: Held, heard_s: float) -> None:
    stripes, release_s = stripes_of(record), little_endian(array("d", record.release_s))
    if any(map(math.isnan, release_s)):
        raise ValueError(f"{record.id}: expected release times, found one that is no number")
    if len(release_s) != len(stripes.starts) - 1:
        raise ValueError(
            f"{record.id}: expected {len(stripes.starts) - 1} release times, found {len(release_s)}"
        )
    ledger.hold(
        record.id,
        record.fs_name,
        record.expires_at_s,
        stripes,
        release_s,
        uid=record.uid,
        alive_s=record.alive_s,
        deaths=record.deaths,
        now=heard_s,
    )


def _check_times(record: Record) -> None:
    times = [
        getattr(record, name)
        for name in ("at_s", "expires_at_s", "release_at_s", "keep_until_s", "alive_s")
        if hasattr(record, name)
    ]
    if isinstance(record, Over):
        times = [until_s for _, until_s in record.ids]
    for at_s in times:
        if not abs(at_s) <= LATEST_S:
            raise ValueError(f"expected times of at most {LATEST_S:.0f} s, found {at_s}")


def little_endian(values: array[Number]) -> array[Number]:
    if sys.byteorder == "little":
        return values
    swapped = values[:]
    swapped.byteswap()
    return swapped
