"""All datasets together: which moves, in which order, what each brings, and where moving stops to pay.

Time saved is of different datasets and of different days, so steps are compared by what they save a day over the
bytes that they copy. Of one dataset the first steps bring most: few OSTs are high, and each byte taken from them
counts. Steps whose gain per byte is above that of the step before them are one step with it.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from tarazu.allocate import bounds
from tarazu.allocate.problem import Array, build
from tarazu.errors import InfeasibleRequest, InsufficientResources
from tarazu.model import CreateRequest, Layout
from tarazu.parts.rebalance.datasets import Dataset
from tarazu.parts.rebalance.files import FileObjects, Files
from tarazu.parts.rebalance.moves import Load, MoveStep, Wider, wider
from tarazu.parts.rebalance.targets import Targets

MOST_FILES = 5000
"""Of more files the bound is what their bytes, and the largest object, ask for."""


def lowest_s(
    files: Files, sizes: Array, targets: Targets, dataset: Dataset, moved: Array, exact: bool
) -> float:
    """Seconds below which no placement moves the dataset, its layouts unchanged; sizes: of all files; moved: bytes of
    each of its objects; exact: also by the layouts of the files, where they are not too many.

    Space, pools and the state of OSTs are left out: each could only make it more.
    """
    rate = targets.speed
    least = max(float(moved.sum() / rate.sum()), float(moved.max(initial=0.0) / rate.max()))
    if not exact or not 0 < len(dataset.files) <= MOST_FILES:
        return least
    view = msgspec.structs.replace(
        targets.view,
        osts=tuple(
            msgspec.structs.replace(
                o, active=True, no_create=False, readonly=False, stale=False, health="", files_free=2**32
            )
            for o in targets.view.osts
        ),
    )
    requests = []
    for file, times in zip(dataset.files.tolist(), dataset.times.tolist(), strict=True):
        shape = files.shape(file)
        anywhere = tuple(msgspec.structs.replace(c, pool="") for c in shape.layout)
        size = int(sizes[file] * times)
        if size:
            requests.append(CreateRequest(size, Layout(anywhere, shape.layout.composite)))
    try:
        return (
            max(least, bounds.lowest_level(build(view, requests), rate, np.zeros(len(rate))))
            if requests
            else least
        )
    except (InfeasibleRequest, InsufficientResources):
        return least


MOST_EXACT = 20
"""Datasets, those that take longest a day, whose bound also knows their layouts: it costs some 0.1 s each."""

Goal = Literal["time", "space"]


class RebalanceOptions(msgspec.Struct, frozen=True):
    goal: Goal = "time"
    days: float = 30.0
    """What is saved in so many days must be more than the time of moving."""
    bytes_per_s: float = 200e6
    """At which files are moved."""
    until_fill: float = 0.0
    """Goal space: stop when the fullest OST is below; 0: at the mean fill and 0.05."""
    most_moves: int = 10_000
    """Files to move at most."""


class Outlook(msgspec.Struct, frozen=True):
    """A dataset before, and after all moves."""

    dataset: Dataset
    before_s: float
    """Until its slowest OST has moved it."""
    after_s: float
    bound_s: float
    """No placement of its files is faster."""
    even_s: float
    """All OSTs at once, if bytes could be dealt at will. Far below `bound_s`: single objects are too large."""
    wider: tuple[Wider, ...]
    """Files whose largest object is what is waited for."""
    slowest: int
    """OST index, before."""
    size_bytes: int


class Worth(msgspec.Struct, frozen=True):
    """One step with what it brings."""

    dataset: int
    """Number in `Advice.outlooks`; -1 where the goal is space."""
    step: MoveStep
    saves_s_per_day: float
    """0 where the goal is space."""
    lowers_fill: float
    """Of the fullest OST; 0 where the goal is time."""
    pays: bool
    """What is saved within the horizon is more than the time of moving."""


class Advice(msgspec.Struct, frozen=True):
    options: RebalanceOptions
    outlooks: tuple[Outlook, ...]
    steps: tuple[Worth, ...]
    """Those that pay, largest gain per byte first."""
    unpaid: tuple[Worth, ...]
    """What would still make it faster, and costs more than it brings."""
    fill_before: float
    """Of the fullest OST."""
    fill_after: float
    fill_mean: float
    fill_bound: float
    """No moving of these files makes the fullest OST emptier: what lies on each besides, and the mean."""

    @property
    def size_bytes(self) -> int:
        """To be copied."""
        return sum(w.step.size_bytes for w in self.steps)

    @property
    def moving_s(self) -> float:
        return self.size_bytes / self.options.bytes_per_s

    @property
    def saves_s_per_day(self) -> float:
        return sum(w.saves_s_per_day for w in self.steps)


def advise(
    files: Files, targets: Targets, datasets: Sequence[Dataset], options: RebalanceOptions | None = None
) -> Advice:
    """Raises BadInput for objects on OSTs that the view does not know."""
    options = options or RebalanceOptions()
    objects = files.objects()
    objects = objects._replace(ost=targets.places(objects.ost))
    first, sizes = files.first, files.sizes
    parts = [_part(d, first, objects) for d in datasets]
    before = [np.bincount(part.ost, moved, len(targets.index)) / targets.speed for part, moved in parts]
    room = targets.room.copy()
    if options.goal == "time":
        taken = _by_time(datasets, _loads(targets, datasets, parts, len(files)), room, options)
    else:
        taken = [(-1, step) for step in _by_space(_space(targets, objects), targets, room, options)]
    worth = _worth(datasets, taken, options)
    paid = [w for w in worth if w.pays]
    place = objects.ost.copy()
    for move in (m for w in paid for m in w.step.moves):
        place[first[move.file] : first[move.file + 1]] = move.after
    outlooks = []
    weighty = sorted(range(len(datasets)), key=lambda n: -float(before[n].max()) * datasets[n].per_day)
    exact = set(weighty[:MOST_EXACT])
    for number, (dataset, (part, moved), level) in enumerate(zip(datasets, parts, before, strict=True)):
        now = place[_of(dataset, first)]
        outlooks.append(
            Outlook(
                dataset,
                float(level.max()),
                float((np.bincount(now, moved, len(level)) / targets.speed).max()),
                lowest_s(files, sizes, targets, dataset, moved, number in exact),
                float(moved.sum() / targets.speed.sum()),
                tuple(wider(files, targets, dataset, part, moved)) if number in exact else (),
                int(targets.index[int(level.argmax())]),
                int(part.stored.sum()),
            )
        )
    held = np.bincount(objects.ost, objects.stored, len(targets.index))
    fixed = targets.used - held
    after = fixed + np.bincount(place, objects.stored, len(targets.index))
    mean = float(targets.used.sum() / targets.total.sum())
    return Advice(
        options,
        tuple(outlooks),
        tuple(paid),
        tuple(w for w in worth if not w.pays),
        float((targets.used / targets.total).max()),
        float((after / targets.total).max()),
        mean,
        max(mean, float((fixed / targets.total).max())),
    )


def _of(dataset: Dataset, first: Array) -> Array:
    """Which objects are of a dataset's files, file after file."""
    begin, count = first[dataset.files], first[dataset.files + 1] - first[dataset.files]
    skipped = np.cumsum(count) - count
    objects: Array = np.repeat(begin - skipped, count) + np.arange(int(count.sum()))
    return objects


def _part(dataset: Dataset, first: Array, objects: FileObjects) -> tuple[FileObjects, Array]:
    """The objects of a dataset's files, and what is moved of each when the dataset is."""
    here = _of(dataset, first)
    part = FileObjects(objects.file[here], objects.ost[here], objects.stored[here])
    return part, part.stored * np.repeat(dataset.times, first[dataset.files + 1] - first[dataset.files])


def _loads(
    targets: Targets, datasets: Sequence[Dataset], parts: Sequence[tuple[FileObjects, Array]], files: int
) -> list[Load]:
    """A file that several datasets have is moved for the one that is moved most often; to the others it is fixed."""
    owner = np.full(files, -1)
    for number in sorted(range(len(datasets)), key=lambda n: datasets[n].per_day):
        owner[datasets[number].files] = number
    made = []
    for number, (part, moved) in enumerate(parts):
        own = owner[part.file] == number
        base = np.bincount(part.ost[~own], moved[~own], len(targets.index))
        mine = FileObjects(part.file[own], part.ost[own], part.stored[own])
        made.append(Load(targets, mine, moved[own], targets.speed, base))
    return made


def _space(targets: Targets, objects: FileObjects) -> Load:
    fixed = targets.used - np.bincount(objects.ost, objects.stored, len(targets.used))
    return Load(targets, objects, objects.stored.astype(float), targets.total.astype(float), fixed)


def _by_time(
    datasets: Sequence[Dataset], loads: Sequence[Load], room: Array, options: RebalanceOptions
) -> list[tuple[int, MoveStep]]:
    """Steps in the order in which they are taken: each time the one that saves most a day for its bytes."""
    heap: list[tuple[float, int, MoveStep]] = []

    def offer(number: int) -> None:
        step = loads[number].step(room)
        if step:
            heapq.heappush(heap, (-datasets[number].per_day * step.gain / step.size_bytes, number, step))

    for number, dataset in enumerate(datasets):
        if dataset.per_day > 0:
            offer(number)
    taken: list[tuple[int, MoveStep]] = []
    moves = 0
    while heap and moves < options.most_moves:
        _, number, step = heapq.heappop(heap)
        if loads[number].fits(step, room):  # else another dataset has taken the space since it was offered
            loads[number].take(step, room)
            taken.append((number, step))
            moves += len(step.moves)
        offer(number)
    return taken


def _by_space(load: Load, targets: Targets, room: Array, options: RebalanceOptions) -> list[MoveStep]:
    until = options.until_fill or float(targets.used.sum() / targets.total.sum()) + 0.05
    taken: list[MoveStep] = []
    moves = 0
    while load.highest > until and moves < options.most_moves:
        step = load.step(room)
        if step is None:
            break
        load.take(step, room)
        taken.append(step)
        moves += len(step.moves)
    return taken


def _worth(
    datasets: Sequence[Dataset], taken: Sequence[tuple[int, MoveStep]], options: RebalanceOptions
) -> list[Worth]:
    """Steps with their gains, those of one dataset in their order, all by gain per byte."""
    groups: dict[int, list[Worth]] = {}
    for number, step in taken:
        of = groups.setdefault(number, [])
        of.append(_one(datasets, number, step, options))
        while len(of) > 1 and _per_byte(of[-1]) > _per_byte(of[-2]):
            last, before = of.pop(), of.pop()
            joined = MoveStep(
                before.step.moves + last.step.moves,
                before.step.size_bytes + last.step.size_bytes,
                before.step.before,
                last.step.after,
            )
            of.append(_one(datasets, number, joined, options))
    every = [w for of in groups.values() for w in of]
    return sorted(every, key=lambda w: -_per_byte(w))  # stable: those of one dataset stay in order


def _one(datasets: Sequence[Dataset], number: int, step: MoveStep, options: RebalanceOptions) -> Worth:
    if number < 0:
        return Worth(number, step, 0.0, step.gain, True)
    saves = step.gain * datasets[number].per_day
    return Worth(number, step, saves, 0.0, saves * options.days > step.size_bytes / options.bytes_per_s)


def _per_byte(worth: Worth) -> float:
    return (worth.saves_s_per_day + worth.lowers_fill) / worth.step.size_bytes
