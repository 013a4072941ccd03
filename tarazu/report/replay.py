"""One remembered run, forecast and placed as it would have been then, measured at the sizes that its files got."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from tarazu import native
from tarazu.allocate import bounds
from tarazu.allocate.eligible import relative_speeds, unfit
from tarazu.allocate.pipeline import Tarazu
from tarazu.allocate.policy import Policy
from tarazu.config import Settings, Weights
from tarazu.errors import InfeasibleRequest, InsufficientResources, LayoutError
from tarazu.layout.manager import FILE_SYSTEMS_OWN, UsableOsts, stripes_of, with_size
from tarazu.model import CreateRequest, Forecast, Layout, SystemView
from tarazu.plan.configure import Directories, configure, layout_policy
from tarazu.plan.left_to_lustre import default_layout
from tarazu.predict import RUNS, aipa, rules
from tarazu.predict.accuracy import match
from tarazu.predict.waves import waves
from tarazu.report.lsa import LsaPolicy
from tarazu.report.objects import Laid
from tarazu.report.placed import Placed, judged, seeds_for
from tarazu.report.placed import stripes_of as all_stripes
from tarazu.report.times import TimeModel
from tarazu.statx import look
from tarazu.trace.records import FileRecord, RunRecord
from tarazu.units import counted

SEEDS = 5
MOST_STRIPES = 300_000
"""Of a run that is placed again."""
FIRST_RUN = "first run: nothing to forecast from"
NOT_FORECAST = "not forecast: no earlier run had such a name"
EXISTED = "was there before the run"
NEVER_CLOSED = "never closed: its size is unknown"
OUTGROWN = "grew into a component that was not forecast"
NO_VIEW = "the file system's OSTs are unknown"

Layouts = Callable[[FileRecord], tuple[Layout, tuple[tuple[int, ...], ...]] | None]
"""Where a file really lay; None: not known."""


class Why(msgspec.Struct):
    """Files that placement would not have touched."""

    files: int = 0
    bytes: int = 0


class Replayed(msgspec.Struct, frozen=True):
    """What one run would have gained. Costs are max / mean of the bytes per OST; times are those of the OST that writes
    longest, 1 being what the usable OSTs would take that share the bytes by their speeds.
    """

    fs_name: str
    application: str
    start_s: float
    mode: str
    files: int
    bytes: int
    placed_files: int
    """That tarazu would have placed."""
    placed_bytes: int
    known_bytes: int
    """Of files whose real OSTs are known."""
    seen: Placed | None
    """As the files really lay; None: not known."""
    lsa: Placed | None
    tarazu: Placed | None
    ost_cost_bound: float | None
    time_bound: float | None
    why: dict[str, Why]
    """Why files would not have been placed."""
    problem: str = ""
    """Why nothing was compared."""

    @property
    def gain(self) -> float | None:
        """Time under Lustre's allocator (as seen, else the model) over that under tarazu."""
        before = self.seen or self.lsa
        if before is None or self.tarazu is None or before.time_s is None or self.tarazu.time_s is None:
            return None
        return before.time_s.median / self.tarazu.time_s.median if self.tarazu.time_s.median else None


class Around(NamedTuple):
    """What a replay needs beside the run."""

    settings: Settings
    view: SystemView | None
    directories: Directories
    layouts: Layouts


def replay(run: RunRecord, before: Sequence[RunRecord], around: Around) -> Replayed:
    """`before`: earlier runs of the application on the file system, oldest first."""
    why: defaultdict[str, Why] = defaultdict(Why)
    counted = [f for f in run.files if _counts(f, why)]
    total = sum(f.size_bytes for f in counted)
    known = [(f, of) for f in counted if (of := around.layouts(f)) is not None]
    outline = Replayed(
        run.step.fs_name, run.step.application, run.start_s, _mode(run), len(counted), total, 0, 0,
        sum(f.size_bytes for f, _ in known), None, None, None, None, None, why,
    )  # fmt: skip
    forecasts = _forecasts(run, before, counted, around, why)
    if not counted:
        return msgspec.structs.replace(outline, problem="no file that it created has bytes")
    if around.view is None:
        return msgspec.structs.replace(outline, problem=NO_VIEW)
    usable = [o for o in around.view.osts if o.usable]
    if not usable:
        return msgspec.structs.replace(outline, problem="no OST is usable")
    try:
        chosen = _gaining(_chosen(counted, forecasts, around, why), around, why)
    except (InfeasibleRequest, InsufficientResources) as error:
        return msgspec.structs.replace(outline, problem=str(error))
    placed = [(f, forecast, layout) for f, forecast, layout in chosen if forecast and layout]
    compared = msgspec.structs.replace(
        outline, placed_files=len(placed), placed_bytes=sum(f.size_bytes for f, _, _ in placed)
    )
    try:
        return _compare(compared, around, chosen, known, total)
    except (InfeasibleRequest, InsufficientResources) as error:
        return msgspec.structs.replace(compared, problem=str(error))


def _mode(run: RunRecord) -> str:
    """How the run was placed, as far as its files show."""
    outcomes = run.outcomes
    if outcomes.keys() & {"hit", "partly", "refused", "raced"}:
        return "place"
    return "advise" if "advised" in outcomes else "observe"


def _counts(file: FileRecord, why: defaultdict[str, Why]) -> bool:
    reason = EXISTED if file.existed else "" if file.closed else NEVER_CLOSED
    if reason:
        _note(why, reason, file)
    return not reason and file.size_bytes > 0


def _note(why: defaultdict[str, Why], reason: str, file: FileRecord) -> None:
    why[reason].files += 1
    why[reason].bytes += file.size_bytes


def _forecasts(
    run: RunRecord,
    before: Sequence[RunRecord],
    files: Sequence[FileRecord],
    around: Around,
    why: defaultdict[str, Why],
) -> list[Forecast | None]:
    """What was to be expected of each file, by the same forecast that a plan is made from."""
    if not before:
        for file in files:
            _note(why, FIRST_RUN, file)
        return [None] * len(files)
    past = list(before[-RUNS:])
    since = rules.decide(past).since
    prediction = aipa.forecast(past[since:], run.step)
    forecasts = match(files, prediction.files)
    for file, forecast in zip(files, forecasts, strict=True):
        if forecast is None:
            _note(why, NOT_FORECAST, file)
    return forecasts


_Chosen = tuple[FileRecord, Forecast | None, Layout | None]


def _chosen(
    files: Sequence[FileRecord],
    forecasts: Sequence[Forecast | None],
    around: Around,
    why: defaultdict[str, Why],
) -> list[_Chosen]:
    """Each file with the layout that a plan would have given it; None: it is left to Lustre."""
    assert around.view
    expected = [f for f in forecasts if f]
    layouts = iter(
        configure(
            expected,
            _targets(around.view, sum(f.size_bytes for f in expected)),
            around.directories,
            layout_policy(around.settings.layout),
            foreign_defaults=around.settings.layout.foreign_defaults,
            of_wave=waves(expected),
        ).files
        if expected
        else ()
    )
    chosen: list[_Chosen] = []
    for file, forecast in zip(files, forecasts, strict=True):
        new = next(layouts) if forecast else None
        layout, reason = (new.layout, new.left_because) if new else (None, "")
        if new and layout and layout.covered(file.size_bytes) > layout.covered(new.forecast.size_bytes):
            layout, reason = None, OUTGROWN
        if new and reason:
            _note(why, reason, file)
        chosen.append((file, forecast, layout))
    return chosen


def _gaining(chosen: list[_Chosen], around: Around, why: defaultdict[str, Why]) -> list[_Chosen]:
    """The same, without the files that the site's policy would have left where they lie anyway."""
    assert around.view
    own = _lustres(chosen, around)
    expected = [
        CreateRequest(f.size_bytes, layout, None if layout == lustres else lustres, f.writers)
        for (_, f, layout), lustres in zip(chosen, own, strict=True)
        if f and layout
    ]
    if not expected or sum(sum(c.stripe_count for c in r.layout) for r in expected) > MOST_STRIPES:
        return chosen
    allocation = Tarazu.of_site(around.settings.allocate).allocate(around.view, expected)
    placeable = [at for at, (_, forecast, layout) in enumerate(chosen) if forecast and layout]
    done = list(chosen)
    for i, left in allocation.left.items():
        file, forecast, _ = done[placeable[i]]
        _note(why, left.why, file)
        done[placeable[i]] = (file, forecast, None)
    return done


def _targets(view: SystemView, size_bytes: int) -> UsableOsts:
    usable = [o for o in view.osts if o.usable]
    pools = Counter(pool for ost in usable for pool in ost.pools)
    return UsableOsts(len(usable), pools, unfit(usable, Weights(), size_bytes / max(1, len(usable))))


def _compare(
    outline: Replayed,
    around: Around,
    chosen: Sequence[_Chosen],
    known: Sequence[tuple[FileRecord, tuple[Layout, tuple[tuple[int, ...], ...]]]],
    total: int,
) -> Replayed:
    view = around.view
    assert view
    osts = np.array([o.index for o in view.osts], np.int64)
    times = _even_times(view, len(chosen), total)
    own = _lustres(chosen, around)
    by_lustre = [
        CreateRequest(f.size_bytes, layout, writers=f.writers)
        for (f, _, _), layout in zip(chosen, own, strict=True)
    ]
    planned = [
        CreateRequest(f.size_bytes, layout, writers=f.writers)
        for f, forecast, layout in chosen
        if forecast and layout
    ]
    rest = [
        CreateRequest(f.size_bytes, layout, writers=f.writers)
        for (f, forecast, ours), layout in zip(chosen, own, strict=True)
        if not (forecast and ours)
    ]
    stripes = all_stripes(by_lustre) + all_stripes(planned)
    if stripes > MOST_STRIPES:
        return msgspec.structs.replace(
            outline, problem=f"{counted(stripes, 'stripe')}: more than are placed again here"
        )
    draws = range(min(SEEDS, seeds_for(stripes)))
    lustre = [Laid(by_lustre, _places(LsaPolicy(seed), view, by_lustre)) for seed in draws]
    expected = [
        CreateRequest(f.size_bytes, layout, writers=f.writers) for _, f, layout in chosen if f and layout
    ]
    places = _places(Tarazu(), view, expected)
    every = [*planned, *rest]
    ours = [Laid(every, [*places, *_places(LsaPolicy(seed), view, rest)]) for seed in draws]
    seen = None
    if outline.known_bytes >= 0.99 * total:
        requests = [CreateRequest(f.size_bytes, layout, writers=f.writers) for f, (layout, _) in known]
        lay = Laid(requests, [of for _, (_, of) in known])
        if set(np.unique(lay.objects().ost).tolist()) <= set(osts.tolist()):
            seen = judged("as seen", [lay], view, times)
    return msgspec.structs.replace(
        outline,
        seen=seen,
        lsa=judged("lsa", lustre, view, times),
        tarazu=judged("tarazu", ours if rest else ours[:1], view, times),
        ost_cost_bound=bounds.utilization_bound(view, every),
        time_bound=times.bound_s(view, every, [r.size_bytes for r in every]),
    )


def _places(
    policy: Policy, view: SystemView, requests: Sequence[CreateRequest]
) -> list[tuple[tuple[int, ...], ...]]:
    if not requests:
        return []
    return [f.osts for f in policy.allocate(view, requests).files]


def _even_times(view: SystemView, files: int, total: int) -> TimeModel:
    """Speeds at which all usable OSTs together write the run's bytes in 1."""
    relative = np.array(relative_speeds(view.osts), float)
    usable = np.array([o.usable for o in view.osts])
    speed = relative / float(relative[usable].sum()) * max(1, total)
    indices = np.array([o.index for o in view.osts], np.int64)
    return TimeModel(indices, speed, np.zeros(files, np.int64), None, Laid((), ()))


def _lustres(chosen: Sequence[_Chosen], around: Around) -> list[Layout]:
    """The layout that Lustre itself gives each file: its directory's default, else the file system's."""
    assert around.view
    parents = [f.key.rpartition("/")[0] or "/" for f, _, _ in chosen]
    answer = around.directories(tuple(sorted(set(parents))))
    targets = _targets(around.view, 0)
    made = {
        parent: _as_created(default_layout(answer.parents.get(parent, answer.root)), targets)
        for parent in set(parents)
    }
    return [made[parent] for parent in parents]


def _as_created(default: Layout | str | None, targets: UsableOsts) -> Layout:
    """A default layout as a new file has it."""
    if not isinstance(default, Layout):
        default = Layout((FILE_SYSTEMS_OWN,))
    components = []
    for part in default:
        sized = with_size(part, FILE_SYSTEMS_OWN.stripe_size_bytes)
        count = stripes_of(part, targets.count(part.pool)) if part.pattern != "mdt" else 0
        components.append(msgspec.structs.replace(sized, stripe_count=count))
    return msgspec.structs.replace(default, components=tuple(components))


def decoded(blob: bytes) -> tuple[Layout, tuple[tuple[int, ...], ...]] | None:
    """A layout with its OSTs from `lustre.lov`; None where it says nothing that can be used."""
    if not blob:
        return None
    try:
        attribute = native.decode_lov(blob)
    except LayoutError:
        return None
    parts = [c for c in attribute.components if not c.extension]
    if attribute.odd:
        return None
    return attribute.layout(), tuple(tuple(c.osts) for c in parts)


def size_on_disk(path: str) -> int:
    """-1 where there is no such file, or its servers do not answer."""
    try:
        return look(path).st_size
    except OSError:
        return -1
