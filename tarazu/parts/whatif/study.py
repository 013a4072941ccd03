"""One logged job under other placements: what it cost as it was, and what it would have cost."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from tarazu.config import LayoutSettings
from tarazu.model import CreateRequest, SystemView
from tarazu.parts.whatif import stripe_counts
from tarazu.parts.whatif.comparison import Comparison, Progress, compare
from tarazu.parts.whatif.job import LoggedJob
from tarazu.parts.whatif.system import LoggedSystem, known_osts, system
from tarazu.report.objects import Laid, joined
from tarazu.report.placed import Placed, judged
from tarazu.report.speeds import ObjectRates, Writing, ost_speeds, phases, union_s
from tarazu.report.times import TimeModel
from tarazu.units import counted

AS_LOGGED = "as logged"


class OstRow(msgspec.Struct, frozen=True):
    """One OST in the log and under the policies (of the seed in the middle)."""

    ost: int
    seen_bytes_per_s: float | None
    """None: the log does not show it."""
    bytes: dict[str, int]
    """Policy → new files' bytes on it."""
    seconds: dict[str, float]
    """Policy → how long it writes, with what was there before; empty where no speeds are known."""


class Wider(msgspec.Struct, frozen=True):
    """The same files with more stripes."""

    name: str
    stripe_count: str
    """`8`, or `2-16` where files differ."""
    stripes: int
    compared: Comparison | None
    """None: too many stripes to be tried."""


class WhatIf(msgspec.Struct, frozen=True):
    """The answer for one job on one file system."""

    log: str
    application: str
    mount: str
    ranks: int
    files: int
    new_files: int
    written_bytes: int
    run_time_s: float
    """0: not known."""
    span_s: float
    """From the first write to the last return; 0 where times say nothing."""
    writing_s: float
    """Of these, while some file was being written."""
    phases: int
    osts: int
    """Known to exist."""
    stripe_count: str
    actual: Placed | None
    """None: the log cannot say; `notes` and `why_no_figures` say why."""
    compared: Comparison | None
    """None: there is nothing to place, or nowhere to place it."""
    wider: tuple[Wider, ...]
    rows: tuple[OstRow, ...]
    notes: tuple[str, ...]
    why_no_figures: str
    why_no_times: str

    @property
    def gain_s(self) -> float | None:
        """By how much tarazu would shorten the writing, at most; None where times are not known."""
        ours = self.compared.of("tarazu").time_s if self.compared else None
        if self.actual is None or self.actual.time_s is None or ours is None:
            return None
        return max(0.0, self.actual.time_s.median - ours.median)

    @property
    def least_run_s(self) -> float | None:
        """The run takes no less under tarazu: all but the gain stays as it was."""
        if self.gain_s is None or not self.run_time_s:
            return None
        return max(self.run_time_s - self.gain_s, self.run_time_s - self.writing_s)


def study(
    job: LoggedJob,
    *,
    osts: int = 0,
    view: SystemView | None = None,
    layout: LayoutSettings | None = None,
    progress: Progress = lambda text: None,
) -> WhatIf:
    """osts, view: what is known of the file system beside the log; layout: settings of `auto`."""
    new, there = job.new_files, tuple(f for f in job.files if f.existed)
    ordered = (*new, *there)
    requests = [CreateRequest(f.size_bytes, f.layout, writers=f.writers) for f in new]
    sent = [f.written_bytes for f in new]
    placed = Laid(requests, [f.osts for f in new], sent)
    fixed = Laid(
        [CreateRequest(f.size_bytes, f.layout, writers=f.writers) for f in there],
        [f.osts for f in there],
        [f.written_bytes for f in there],
    )
    indices = np.array(known_osts(job, osts, view), np.int64)
    writing = Writing(*(np.array([getattr(f, name) for f in ordered]) for name in Writing._fields))
    seen, numbers, rates = np.full(len(indices), np.nan), np.zeros(len(ordered), np.int64), None
    if not job.why_no_times:
        every = joined([placed, fixed]).objects()
        seen, numbers, rates = (
            ost_speeds(every, writing, indices),
            phases(writing),
            ObjectRates(every, writing),
        )
    around = system(job, seen, osts, view)
    times = None
    if rates and not np.isnan(around.speed).any():
        times = TimeModel(indices, around.speed, numbers, rates, fixed)
    actual = None if job.why_no_figures or not len(new) else judged(AS_LOGGED, [placed], around.view, times)
    compared: Comparison | None = None
    wider: tuple[Wider, ...] = ()
    if requests and len(indices) > 1:
        compared = compare(around.view, requests, times=times, written=sent, progress=progress)
        wider = _wider(around, requests, sent, times, layout or LayoutSettings(), progress, compared)
    some = len(ordered) > 0 and not job.why_no_times
    return WhatIf(
        log=job.log,
        application=job.application,
        mount=job.mount,
        ranks=job.ranks,
        files=len(job.files),
        new_files=len(new),
        written_bytes=job.written_bytes,
        run_time_s=job.run_time_s,
        span_s=float(writing.end_s.max() - writing.start_s.min()) if some else 0.0,
        writing_s=_writing_s(writing) if some else 0.0,
        phases=int(numbers.max(initial=0)) + 1,
        osts=len(indices),
        stripe_count=stripe_counts.told(requests),
        actual=actual,
        compared=compared,
        wider=wider,
        rows=_rows(around, actual, compared),
        notes=(*job.notes, *around.notes, *_about(job, indices.tolist(), osts, view)),
        why_no_figures=job.why_no_figures,
        why_no_times=job.why_no_times,
    )


def _writing_s(writing: Writing) -> float:
    """While some file was being written; never more than all write calls took."""
    union = float(union_s(writing.start_s, writing.end_s, np.zeros(len(writing.start_s), np.int64), 1)[0])
    calls = float(writing.write_s.sum())
    return min(union, calls) if calls > 0 else union


def _wider(
    around: LoggedSystem,
    requests: list[CreateRequest],
    sent: list[int],
    times: TimeModel | None,
    settings: LayoutSettings,
    progress: Callable[[str], None],
    as_it_is: Comparison,
) -> tuple[Wider, ...]:
    alternatives = []
    known: dict[tuple[CreateRequest, ...], Comparison | None] = {tuple(requests): as_it_is}
    for name, changed in stripe_counts.variants(around.view, requests, settings):
        progress(f"stripe count {name}")
        stripes = sum(c.stripe_count for r in changed for c in r.layout)
        compared = known.get(changed)
        if compared is None and stripes <= stripe_counts.MOST_STRIPES:
            compared = compare(
                around.view,
                changed,
                names=("lsa", "tarazu"),
                times=times,
                written=sent,
                seeds=(1, 3),
            )
        known[changed] = compared
        alternatives.append(Wider(name, stripe_counts.told(changed), stripes, compared))
    return tuple(alternatives)


def _rows(around: LoggedSystem, actual: Placed | None, compared: Comparison | None) -> tuple[OstRow, ...]:
    every = [*([actual] if actual else []), *(compared.placed if compared else ())]
    shown = [p for p in every if p.ost_bytes]
    return tuple(
        OstRow(
            ost.index,
            ost.write_bytes_per_s,
            {p.policy: p.ost_bytes[place] for p in shown},
            {p.policy: p.ost_s[place] for p in shown if p.ost_s},
        )
        for place, ost in enumerate(around.view.osts)
    )


def _about(job: LoggedJob, indices: list[int], osts: int, view: SystemView | None) -> list[str]:
    """What is to be said of the OSTs that are known."""
    if osts or view:
        return []
    if not indices:
        return ["which OSTs there are is not known: --osts N or --view FILE tells"]
    missing = max(indices) + 1 - len(indices)
    text = f"the log names {counted(len(indices), 'OST')}; others may exist (--osts N, --view FILE)"
    return [text + (f": {missing} below the highest index are not named" if missing else "")]
