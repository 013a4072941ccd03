"""What is said of a run and its causes, to people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tarazu import ranges
from tarazu.ost_state import HOT_LOAD
from tarazu.parts.why.facts import Cause, Kind, Run
from tarazu.parts.why.model import Model
from tarazu.parts.why.seen import full, own_job
from tarazu.then import JobThen, OstThen
from tarazu.units import counted, human_bytes

MOST_NAMED = 3
EVEN = 1.05
"""Most over mean, below which bytes lie evenly."""
KNOWN = 0.8
"""Of the I/O time, less than which the system is known for: that is said."""
MUCH_MORE = 1.25
"""Times the usual bytes, from which it is said."""


def not_slow(run: Run, expected_s: float, by: str, more: float) -> str:
    work = f", with {more:.2g} times the usual bytes" if more >= MUCH_MORE else ""
    return f"not slow: {run.io_s:.3g} s of I/O where {expected_s:.3g} s were expected ({by}){work}"


def slow(run: Run, expected_s: float, by: str, lost_s: float, found: Sequence[Cause], unknown: float) -> str:
    begin = f"slow: {run.io_s:.3g} s of I/O where {expected_s:.3g} s were expected ({by})"
    if not found:
        return f"{begin}; why is not known"
    first = f"{found[0].share:.0%} of the lost {lost_s:.3g} s: {found[0].sentence}"
    return f"{begin}; {first}" + (f"; {unknown:.0%} is not known" if unknown > found[0].share else "")


def first(run: Run, least_s: float) -> str:
    """Of one that no earlier run can be compared with, and that took longer than its OSTs would at best."""
    return (
        f"whether it was slow is not known, no earlier run is like it: {run.io_s:.3g} s of I/O, "
        f"{least_s:.3g} s at the highest rates seen of its OSTs"
    )


def gaps(run: Run, like: Sequence[Run]) -> Iterator[str]:
    """What could not be looked at."""
    if not run.ost_bytes:
        yield "on which OSTs its files lie is not known"
    if run.system is None:
        yield "how the servers and OSTs were meanwhile is not known"
    elif run.system.seconds < KNOWN * run.io_s:
        known = f"{run.system.seconds:.3g} s of its {run.io_s:.3g} s of I/O"
        yield f"how the servers and OSTs were meanwhile is known for {known}"
    elif like and not any(of.system for of in like):
        yield "how the system was in earlier runs is not known: it is taken as idle and well"
    if not run.calls:
        yield "its calls were not counted in this run"
    for name, server in sorted(run.system.servers.items() if run.system else ()):
        if (server.load or 0.0) >= HOT_LOAD:
            yield f"{name} was hot: {server.load:.0%} of its CPU or memory"


def said(kind: Kind, model: Model) -> tuple[str, dict[str, object]]:
    """(a sentence, the figures that it rests on)."""
    return _SAID[kind](model)


def _known(model: Model) -> list[tuple[int, OstThen]]:
    return [(index, model.system.osts.get(index, OstThen())) for index in model.osts]


def _named(osts: Sequence[int]) -> str:
    return f"OST{'' if len(osts) == 1 else 's'} {ranges.fold(sorted(osts))}"


def _slow_ost(model: Model) -> tuple[str, dict[str, object]]:
    speeds = dict(zip(model.osts, model.seen.speeds, strict=True))
    slow_ones = {i: speeds[i] for i, ost in _known(model) if speeds[i] < 1 and not full(ost)}
    worst = min(slow_ones, key=lambda i: slow_ones[i])
    others = f", the slowest of {_named(list(slow_ones))}" if len(slow_ones) > 1 else ""
    text = f"OST {worst} was slow, at {slow_ones[worst]:.2g} of the usual speed{others}"
    return text, {"osts": sorted(slow_ones), "speed": {str(i): s for i, s in sorted(slow_ones.items())}}


def _full_ost(model: Model) -> tuple[str, dict[str, object]]:
    used = {i: ost for i, ost in _known(model) if full(ost)}
    slow_ones = {i for i, s in zip(model.osts, model.seen.speeds, strict=True) if s < 1}
    away = {i: o for i, o in model.system.osts.items() if full(o) and i not in model.run.ost_bytes}
    crowded = used if slow_ones & used.keys() else away or used
    fills = [ost.fill for ost in crowded.values() if ost.fill is not None]
    how = f" ({max(fills):.0%} used)" if fills and max(fills) > 0.5 else ""
    what = "slow at that" if crowded is used else "took none of its bytes, which lie on fewer OSTs"
    were = "was" if len(crowded) == 1 else "were"
    text = f"{_named(list(crowded))} {were} full{how} and {what}"
    return text, {"osts": sorted(crowded), "fill": {str(i): o.fill for i, o in sorted(crowded.items())}}


def _other_jobs(model: Model) -> tuple[str, dict[str, object]]:
    pairs = list(zip(model.osts, (float(b) for b in model.others), strict=True))
    pressed = sorted(pairs, key=lambda of: -of[1])
    worst = [index for index, others in pressed if others >= pressed[0][1] / 2 > 0]
    servers = {model.system.osts[i].server for i in worst if i in model.system.osts}
    if not worst:
        servers = set(model.system.servers)
    moved = sum(others for index, others in pairs)
    jobs = other_jobs(model.run, model, servers)
    named = " and ".join(_job(job, model, servers) for job in jobs) or "jobs that nobody counts"
    where = f"{_named(worst)} ({', '.join(sorted(filter(None, servers)))})" if worst else "its servers"
    text = f"other jobs at {where}: {named}"
    return text, {
        "osts": sorted(worst),
        "servers": sorted(filter(None, servers)),
        "bytes": moved,
        "jobs": [{"job_id": j.job_id, "bytes": j.bytes, "operations": j.operations} for j in jobs],
    }


def other_jobs(run: Run, model: Model, servers: set[str]) -> list[JobThen]:
    """Of the servers together, the one of most bytes and the one of most operations first; not the run's own job."""
    sums: dict[str, list[float]] = {}
    for name in servers:
        server = model.system.servers.get(name)
        for job in server.jobs if server else ():
            if job.job_id and not own_job(run, job.job_id):
                of = sums.setdefault(job.job_id, [0.0, 0.0])
                of[0] += job.bytes
                of[1] += job.operations
    jobs = [JobThen(job_id, *of) for job_id, of in sums.items()]
    by_bytes = sorted(jobs, key=lambda job: (-job.bytes, job.job_id))
    by_operations = sorted(jobs, key=lambda job: (-job.operations, job.job_id))
    first = [*by_bytes[:1], *by_operations[:1], *by_bytes[1:]]
    return list({job.job_id: job for job in first}.values())[:MOST_NAMED]


def _job(job: JobThen, model: Model, servers: set[str]) -> str:
    operations = f", {job.operations:.3g} operations" if job.operations else ""
    return f"job {job.job_id} ({human_bytes(job.bytes)}{operations})"


def _imbalance(model: Model) -> tuple[str, dict[str, object]]:
    own = model.own
    most = int(own.argmax())
    over = float(own.max() / own.mean())
    fewer = f"on {counted(len(own), 'OST')} where {len(own) + model.narrow} are usual" if model.narrow else ""
    uneven = f"OST {model.osts[most]} has {over:.2g} times the mean" if over >= EVEN or not fewer else ""
    text = f"its own files are {'uneven: ' * bool(uneven)}{', and '.join(filter(None, (uneven, fewer)))}"
    return text, {
        "osts": [model.osts[most]],
        "max_over_mean": over,
        "used": len(own),
        "usual": len(own) + model.narrow,
    }


def _few_stripes(model: Model) -> tuple[str, dict[str, object]]:
    count = len(model.own)
    best = count + model.narrow
    usual = "usual" if model.usual.osts else "worth it"
    text = (
        f"its shared file lies on {counted(count, 'OST')} where {best} are {usual} (lfs setstripe -c {best})"
    )
    return text, {"osts": list(model.osts), "used": count, "wanted": best}


def _small_calls(model: Model) -> tuple[str, dict[str, object]]:
    mean = model.run.bytes / model.calls
    what = "calls" if model.run.calls else "requests, as the servers count them,"
    each = f"{model.calls:.3g} of {human_bytes(mean)} each, {1e6 * model.seen.call_s:.0f} us taken for one"
    return f"its {what} are small: {each}", {"calls": model.calls, "bytes_per_call": mean}


def _metadata(model: Model) -> tuple[str, dict[str, object]]:
    run = model.run
    return f"it made {run.files} files, {run.files / max(run.ranks, 1):.3g} by each process", {
        "files": run.files
    }


def _mds_load(model: Model) -> tuple[str, dict[str, object]]:
    now, usual = model.system.metadata_per_s or 0.0, model.usual.metadata_per_s or 0.0
    text = f"the MDS was busy: {now:.0f} operations/s where {usual:.0f} are usual"
    return text, {"metadata_per_s": now, "usual": usual}


_SAID = {
    Kind.SLOW_OST: _slow_ost,
    Kind.FULL_OST: _full_ost,
    Kind.OTHER_JOBS: _other_jobs,
    Kind.IMBALANCE: _imbalance,
    Kind.FEW_STRIPES: _few_stripes,
    Kind.SMALL_CALLS: _small_calls,
    Kind.METADATA: _metadata,
    Kind.MDS_LOAD: _mds_load,
}
