"""What no placement beats: by the bytes of the jobs, their layouts, and the cluster's curves and links.

Between two barriers a job needs at least the time of its slowest rank alone (each operation at the most that its
stripes get); what is left when all ranks go as fast as they can for a while, over all disks, links or nodes together;
and, where every object is moved whole, the time of the disk, and of the link, that holds the most objects when they
lie as evenly as can be. Of several jobs, the least sum of times is that of always serving whose rest is the shortest.
"""

from __future__ import annotations

import numpy as np

from tarazu.sim.model import striping
from tarazu.sim.model.spec import ClusterSpec, Job, ServiceCurve
from tarazu.sim.workloads.workload import OperationKind

MOVES = {int(OperationKind.WRITE), int(OperationKind.READ)}
Ops = list[tuple[float, float]]
"""(bytes, least seconds) of one rank's operations, in order."""


def bound_s(spec: ClusterSpec, jobs: list[Job]) -> float:
    """Sum of the jobs' times, from their starts to their last bytes."""
    alone = [_alone(spec, job) for job in jobs]
    served = [sum(map(_bytes, segments)) / _capacity(spec, job) for job, segments in zip(jobs, alone)]
    starts = [job.start_s for job in jobs]
    return max(sum(_job_s(spec, job, of) for job, of in zip(jobs, alone)), _shortest_rest_s(starts, served))


class _Segment:
    """What happens between two barriers."""

    def __init__(self) -> None:
        self.ranks: dict[int, Ops] = {}
        self.objects: dict[tuple[int, int, int], int] = {}
        """(file, component, object) → bytes"""


def _bytes(segment: _Segment) -> float:
    return sum(b for ops in segment.ranks.values() for b, _ in ops)


def _alone(spec: ClusterSpec, job: Job) -> list[_Segment]:
    work = job.workload
    rule = striping.rule(job.striping)
    layouts = striping.layouts(rule, [striping.Expected(f.size_bytes) for f in work.files], spec.osts)
    segments: dict[int, _Segment] = {}
    nth: dict[int, int] = {}
    for rank, file, kind, _, _, offset, size, span in work.operations.tolist():
        if kind == OperationKind.BARRIER:
            nth[rank] = nth.get(rank, 0) + 1
        elif kind in MOVES and size:
            segment = segments.setdefault(nth.get(rank, 0), _Segment())
            least = 0.0
            for piece in striping.pieces(layouts[file], offset, size, span):
                most = max(piece.object_bytes)
                used = sum(1 for b in piece.object_bytes if b)
                link = most * -(-used // spec.osses) / spec.oss_link_bytes_per_s
                least += max(most / _stream(spec), link)
                for nth_object, moved in zip(piece.objects, piece.object_bytes, strict=True):
                    key = (file, piece.component, int(nth_object))
                    segment.objects[key] = segment.objects.get(key, 0) + int(moved)
            segment.ranks.setdefault(rank, []).append((float(size), max(least, size / spec.nic_bytes_per_s)))
    return list(segments.values())


def _job_s(spec: ClusterSpec, job: Job, segments: list[_Segment]) -> float:
    return sum(max(_evenly_s(spec, s), _together_s(s, _capacity(spec, job))) for s in segments)


def _together_s(segment: _Segment, capacity: float) -> float:
    """All ranks as fast as they can for a while, then all that is left at `capacity`."""
    ends = [np.cumsum([s for _, s in ops]) for ops in segment.ranks.values()]
    done = [np.cumsum([b for b, _ in ops]) for ops in segment.ranks.values()]
    times = np.unique(np.concatenate([[0.0], *ends]))
    moved = sum(np.interp(times, np.r_[0.0, e], np.r_[0.0, d]) for e, d in zip(ends, done))
    total = sum(float(d[-1]) for d in done)
    return max(float((times + (total - moved) / capacity).max()), *(float(e[-1]) for e in ends))


def _evenly_s(spec: ClusterSpec, segment: _Segment) -> float:
    sizes = np.sort(np.array(list(segment.objects.values()), float))[::-1]
    nth = np.arange(1, len(sizes) + 1)
    disk = float((sizes * np.ceil(nth / spec.osts)).max()) / _best(spec)
    link = float((sizes * np.ceil(nth / spec.osses)).max()) / spec.oss_link_bytes_per_s
    return max(disk, link)


def _capacity(spec: ClusterSpec, job: Job) -> float:
    return min(
        spec.osts * _best(spec),
        spec.osses * spec.oss_link_bytes_per_s,
        job.workload.nodes * spec.nic_bytes_per_s,
    )


def _stream(spec: ClusterSpec) -> float:
    return max(min(c.stream_bytes_per_s, c.peak_bytes_per_s) for c in (spec.write, spec.read))


def _best(spec: ClusterSpec) -> float:
    return max(map(_most, (spec.write, spec.read)))


def _most(curve: ServiceCurve) -> float:
    return max(
        min(n * curve.stream_bytes_per_s, curve.peak_bytes_per_s / (1 + curve.interference * (n - 1)))
        for n in range(1, 65)
    )


def _shortest_rest_s(starts: list[float], needs: list[float]) -> float:
    """Sum of the times where always the job is served that needs least until its end."""
    rest, now, total = dict(enumerate(needs)), min(starts), 0.0
    while rest:
        there = [j for j in rest if starts[j] <= now]
        later = [starts[j] for j in rest if starts[j] > now]
        if not there:
            now = min(later)
            continue
        job = min(there, key=rest.__getitem__)
        until = min([now + rest[job], *later])
        rest[job] -= until - now
        now = until
        if rest[job] <= 1e-12:
            del rest[job]
            total += now - starts[job]
    return total
