"""What a layout costs a site's files: seconds that jobs wait and the price of what others lose, over those of the plain
layout that is cheapest for the very file. 1: no plain stripe count is better for any file.

Files that are alike are one class; what weighs how much: `Sizes.classes`.

The time is that of `layout.stripe_count = auto` (`tarazu.layout.stripe_count`), the allocator's for files that are
alike, summed over components: a file is written from its beginning to its end, one component after the other, and files
that are written at one time reach each component together. Five parts, each with a weight:

objects    requests: at an OST for each object (create, lock, glimpse at `stat`, destroy): a job waits for those of its
           own file, and for its share of all; at the MDS for each component that is made late, and for each
           step of one that extends itself; bytes on an MDT hold up all other requests there as long as they take
bandwidth  bytes, as if they lay evenly: no process is faster than its streams, no OST than it is
balance    what the fullest OST takes longer, at the best placement: the allocator's bound for objects that are equal
space      an object's bytes over the room of an OST, times the time to write them; of one that extends itself no
           more than its part of an extension
grants     bytes that writing clients have reserved on OSTs, a small price for each

A process does not wait for what its client holds back until later (`DIRTY_BYTES` an object).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from tarazu import lustre
from tarazu.allocate.course import DIRTY_BYTES
from tarazu.layout.objects import STREAM_LOSS, STREAM_SHARE
from tarazu.layout.stripe_count import BUSY, OBJECT_REQUESTS, OST_BYTES_PER_S, REQUEST_S
from tarazu.model import Layout
from tarazu.parts.pfl.sizes import Array, Classes
from tarazu.units import MIB, TIB

GRANT_PRICE = 0.01
"""Of the time in which an OST moves as many bytes: our choice."""
ROOM_BYTES = 64 * TIB
"""Of an OST, where nothing is known of it: our choice."""
SMALL_BYTES = 64 << 10
"""What Welch and Noer (MSST 2013) call small: a quarter to nine tenths of all files of 65 HPC sites."""
PARTS = ("objects", "bandwidth", "balance", "space", "grants")


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of the parts."""

    objects: float = 1.0
    bandwidth: float = 1.0
    balance: float = 1.0
    space: float = 1.0
    grants: float = 1.0

    @property
    def array(self) -> Array:
        return np.array([getattr(self, part) for part in PARTS])


class Target(msgspec.Struct, frozen=True):
    """The file system that files are laid out for: OSTs that are alike."""

    osts: int
    room_bytes: int = ROOM_BYTES
    """Of an OST."""
    ost_bytes_per_s: float = OST_BYTES_PER_S
    request_s: float = REQUEST_S
    """Of an OST or the MDS, for a request without bytes."""
    stripe_size_bytes: int = MIB
    mdts: int = 1
    weights: Weights = Weights()

    @property
    def widest(self) -> int:
        """Stripes of a file on as many OSTs as it may have."""
        return min(self.osts, lustre.LOV_MAX_STRIPE_COUNT)


class Striped(NamedTuple):
    """How one component lies."""

    stripe_count: int
    """0: on the MDT (DoM)."""
    extension_bytes: int = 0
    """Of a self-extending one (SEL)."""


def stripe_size(end_bytes: int, most_bytes: int) -> int:
    """Of a component: `most_bytes` where that divides its end, else the largest power of two below it that does."""
    if end_bytes == lustre.EOF or end_bytes % most_bytes == 0:
        return most_bytes
    power = 1 << most_bytes.bit_length() - 1
    return max(min(power, end_bytes & -end_bytes), lustre.LOV_MIN_STRIPE_SIZE)


def parts(of: Classes, target: Target, start: int, end: int, how: Striped, size_bytes: int) -> Array:
    """(5, classes) seconds of one wave of each class, for the component [start, end); size_bytes: of a stripe."""
    one: Array = parts_of_each(of, target, start, end, (how,), size_bytes)[:, 0]
    return one


def parts_of_each(
    of: Classes, target: Target, start: int, end: int, kinds: Sequence[Striped], size_bytes: int
) -> Array:
    """(5, kinds, classes): as `parts`, for each way in which the component may lie.

    A file reaches the first component always, another one with its first byte in it.
    """
    osts, rate, writers, files = target.osts, target.ost_bytes_per_s, of.writers, of.at_once
    reached = (of.size_bytes > start) | (start == 0)
    held = np.maximum(np.minimum(of.size_bytes, float(end)) - start, 0)
    waits = np.maximum(1 - writers * DIRTY_BYTES / np.maximum(of.size_bytes, 1), 0)
    late = files * target.request_s * (start > 0)
    result = np.zeros((len(PARTS), len(kinds), len(held)))
    on_mdts = [how.stripe_count == 0 for how in kinds]
    if any(on_mdts):
        even = np.maximum(files * held / target.mdts, held / (writers * STREAM_SHARE))
        result[0, on_mdts] = late + files * held / target.mdts / rate
        result[1, on_mdts] = even * waits / rate
    striped = [how for how in kinds if how.stripe_count]
    if not striped:
        return result * reached
    count = np.minimum([[how.stripe_count] for how in striped], osts)
    extension_bytes = np.array([[how.extension_bytes or np.inf] for how in striped])
    busy = held / np.minimum(osts, BUSY * STREAM_SHARE * writers)
    width = (size_bytes * count).astype(float)
    filled = np.minimum(np.maximum(np.ceil(held / size_bytes), 1), count)
    largest = np.floor(held / width) * size_bytes + np.minimum(held % width, size_bytes)
    objects = files * filled
    used = np.minimum(osts, objects)
    loss = 1 + STREAM_LOSS * (np.maximum(1.0, objects * writers / used) - 1)
    stream = largest / (writers * STREAM_SHARE)
    even = np.maximum(np.maximum(files * held / used * loss, held / filled / (writers * STREAM_SHARE)), busy)
    fullest = np.maximum(np.ceil(objects / osts) * largest, files * held / osts) * loss
    moved = np.maximum(np.maximum(np.maximum(fullest, stream), busy), even)
    steps = np.maximum(np.ceil(held / extension_bytes) - 1, 0)
    requests = OBJECT_REQUESTS * target.request_s * count * (1 + files / osts) + late
    risked = np.minimum(held / filled, extension_bytes / count)
    result[:, [not on_mdt for on_mdt in on_mdts]] = (
        requests + files * target.request_s * steps,
        even * waits / rate,
        (moved - even) * waits / rate,
        files * filled * risked**2 / target.room_bytes / rate,
        files * np.minimum(filled * writers * DIRTY_BYTES, held) * GRANT_PRICE / rate,
    )
    return result * reached


def per_second(of: Classes, target: Target) -> Array:
    """(classes,) what a second of one wave of a class adds to the cost: its weight over the least seconds that it takes
    in any plain layout, one request at least.
    """
    plain = [Striped(count) for count in plain_counts(target.osts)]
    seconds = parts_of_each(of, target, 0, lustre.EOF, plain, target.stripe_size_bytes)
    least = np.tensordot(target.weights.array, seconds, 1).min(axis=0)
    each: Array = of.weight / np.maximum(least, target.request_s)
    return each


def plain_counts(osts: int) -> tuple[int, ...]:
    """Stripe counts in steps of about 1.4, to all OSTs."""
    found = {1, 2, 3}
    count = 4
    while count < osts:
        found |= {count, count * 3 // 2}
        count *= 2
    most = min(osts, lustre.LOV_MAX_STRIPE_COUNT)
    return tuple(sorted({n for n in found if n <= most} | {most}))


class Cost(msgspec.Struct, frozen=True):
    """Of one layout for all files of a set."""

    total: float
    parts: dict[str, float]
    """Of each, without its weight."""
    objects: float
    """On OSTs, a file in the mean."""
    small_objects: float
    """Of files up to SMALL_BYTES; 0 where there are none."""
    mdt_bytes: float
    """On MDTs (DoM)."""


def of_layout(of: Classes, target: Target, layout: Layout) -> Cost:
    """The cost of a layout for these files, at least one."""
    total = by_class_of(of, target, layout) @ per_second(of, target)
    files = float(of.files.sum())
    objects = objects_of(of, target, layout)
    small = of.size_bytes <= SMALL_BYTES
    return Cost(
        float(total @ target.weights.array),
        dict(zip(PARTS, total.tolist(), strict=True)),
        float((objects * of.files).sum() / files),
        float((objects * of.files)[small].sum() / max(1.0, of.files[small].sum())),
        sum(
            float((np.minimum(of.size_bytes, c.end_bytes) * of.files).sum() / files)
            for c in layout.components
            if c.pattern == "mdt"
        ),
    )


def by_class_of(of: Classes, target: Target, layout: Layout) -> Array:
    """(5, classes) seconds of one wave."""
    total = np.zeros((len(PARTS), len(of.files)))
    for c in layout.components:
        how = Striped(0 if c.pattern == "mdt" else c.stripe_count, c.extension_bytes)
        total += parts(of, target, c.start_bytes, c.end_bytes, how, c.stripe_size_bytes)
    return total


def objects_of(of: Classes, target: Target, layout: Layout) -> Array:
    """(classes,) objects on OSTs that a file gets: all of each component that it reaches."""
    total = np.zeros(len(of.files))
    for c in layout.components:
        reached = (of.size_bytes > c.start_bytes) | (c.start_bytes == 0)
        total += reached * (0 if c.pattern == "mdt" else min(c.stripe_count, target.osts))
    return total
