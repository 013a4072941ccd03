"""What the servers saw of a run and of others beside it, on each OST that it used."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from tarazu.ost_state import NEARLY_FULL, Verdict
from tarazu.parts.why.facts import Run
from tarazu.then import MOST_JOBS, OstThen, ServerThen, System
from tarazu.units import KIB, MIB

REQUEST_BYTES = 256 * KIB
"""A request costs an OST as much as so many bytes at least: an OST of disks seeks."""
CALL_S = 100e-6
"""Of a small call of a process, where nobody saw what became of it; an assumption between the next two."""
CACHED_CALL_S = 20e-6
"""Of one whose bytes the client sends together with others."""
REQUEST_S = 0.5e-3
"""Of one that is a request of its own, beside the server's time (as `layout.stripe_count` has it)."""
LARGE_CALL_BYTES = 1 * MIB
"""Calls from this size on cost nothing beside their bytes."""
LIKE_OTHERS = 0.8
"""From this speed on an OST without a verdict is one like the others."""
LEAST_PEERS = 2
"""OSTs that are well, from which others can be compared with them."""
CLEARLY_SLOW = 0.7
"""Of what others served per second of I/O time, below which one was slow meanwhile, verdict or not: well ones differ by
a fifth."""
QUIET = 0.25
"""Others' bytes over its own, up to which an OST was the run's own: a queue makes I/Os slow on a well disk too."""
LEAST_IN_FLIGHT = 0.05
"""With less in flight nobody can tell what an OST could do."""


def full(ost: OstThen) -> bool:
    """Too full for new files, or nearly."""
    return ost.verdict in (Verdict.FULL, Verdict.NEARLY_FULL) or (ost.fill or 0.0) >= NEARLY_FULL


def slowness(ost: OstThen) -> float:
    """Its speed for the model: at most 1."""
    if ost.speed is None or (ost.verdict.weight <= Verdict.BUSY.weight and ost.speed >= LIKE_OTHERS):
        return 1.0
    return min(1.0, max(ost.speed, 1e-3))


def own_job(run: Run, job_id: str) -> bool:
    """Is that id of `job_stats` the run's? Sites put more in it: `4711`, `4711.alice`, `ior.1000`, `node1:4711`."""
    return bool(run.job_id) and (job_id == run.job_id or run.job_id in _parts(job_id))


def _parts(job_id: str) -> list[str]:
    for sign in ":@/ ":
        job_id = job_id.replace(sign, ".")
    return job_id.split(".")


class SeenThen:
    """Lists are in the order of `osts`."""

    def __init__(self, run: Run, system: System, osts: Sequence[int]) -> None:
        self.run, self.system = run, system
        self.osts = [system.osts.get(index, OstThen()) for index in osts]
        # What others did while this run computed has cost it nothing.
        self.during = min(1.0, run.io_s / system.seconds) if system.seconds else 1.0
        own = [run.ost_bytes[index] for index in osts]
        self.others = [self.during * self._others(o, b) for o, b in zip(self.osts, own, strict=True)]
        quiet = [others <= QUIET * size for others, size in zip(self.others, own, strict=True)]
        self.speeds = [self._speed(*of) for of in zip(self.osts, own, quiet, strict=True)]
        self.calls = run.calls or self._requests()
        self.call_s = self._call_s()

    def _others(self, ost: OstThen, own_bytes: float) -> float:
        """Bytes of other jobs there; as many as their requests stand for at least."""
        if ost.bytes is None:
            return 0.0
        server = self.system.servers.get(ost.server, ServerThen())
        own = [job for job in server.jobs if own_job(self.run, job.job_id)]
        named = [job for job in server.jobs if not own_job(self.run, job.job_id)]
        others = max(0.0, ost.bytes - own_bytes)
        own_operations = own_bytes * sum(j.operations for j in own) / max(1.0, sum(j.bytes for j in own))
        requests = max(0.0, (ost.operations or 0.0) - max(own_operations, own_bytes / MIB))
        if own and len(server.jobs) < MOST_JOBS:
            # All jobs of that server are known.
            others = min(others, sum(job.bytes for job in named))
            requests = min(requests, sum(job.operations for job in named))
        return max(others, requests * REQUEST_BYTES)

    def _speed(self, ost: OstThen, own_bytes: float, alone: bool) -> float:
        """The verdict's, unless it served as fast as others that are well in this very time, or gave this run all that
        it can: verdicts come late. For the same reason one without a verdict is slow where it clearly was, and others
        were not at it.
        """
        speed, served = slowness(ost), self._served(ost)
        speed = 1.0 if self._got(own_bytes) >= LIKE_OTHERS else speed
        well = [each for each in self.osts if slowness(each) == 1 and each is not ost]
        others = [rate for each in well if (rate := self._served(each)) is not None]
        if served is None or len(others) < LEAST_PEERS:
            return speed
        here = served / median(others)
        if speed < 1:
            return 1.0 if here >= LIKE_OTHERS else max(speed, here)
        return here if here < CLEARLY_SLOW and alone else 1.0

    def _got(self, own_bytes: float) -> float:
        """Share of the highest rate ever seen of these OSTs that the run alone got of one; 0: not known."""
        peak = max((ost.peak_bytes_per_s or 0.0 for ost in self.osts), default=0.0)
        return min(1.0, own_bytes / (self.run.io_s * peak)) if self.run.io_s > 0 and peak >= 1 else 0.0

    def _served(self, ost: OstThen) -> float | None:
        """Bytes per second of I/O time; None: nobody timed its I/O."""
        busy_s = (ost.in_flight or 0.0) * self.system.seconds
        return ost.bytes / busy_s if ost.bytes and busy_s else None

    def _requests(self) -> float:
        """Of its own job, as the servers count them, where they saw most of it; 0: not known."""
        own = [j for s in self.system.servers.values() for j in s.jobs if own_job(self.run, j.job_id)]
        seen = sum(job.bytes for job in own)
        return sum(j.operations for j in own) * self.run.bytes / seen if seen > self.run.bytes / 2 else 0.0

    def _call_s(self) -> float:
        """Of one of its small calls: as it was a request of its own, or not."""
        requests = self._requests()
        if not requests or not self.calls:
            return CALL_S
        if requests < self.calls / 2:
            return CACHED_CALL_S
        busy_s = sum((ost.in_flight or 0.0) * self.system.seconds for ost in self.osts)
        served = sum(ost.operations or 0.0 for ost in self.osts)
        return REQUEST_S + (min(busy_s / served, REQUEST_S) if served else 0.0)

    def highest(self, place: int, highest: float, least: float) -> float:
        """Bytes a second that an OST gives to all: the highest ever seen, or what it gave for the time that it was
        busy meanwhile, where that is less. In flight are as many I/Os as share of the time that a disk is busy
        (Little's law). `least`: what the application alone gets of one.
        """
        ost = self.osts[place]
        busy = min(1.0, ost.in_flight or 0.0)
        if not ost.bytes or busy < LEAST_IN_FLIGHT or not self.system.seconds:
            return highest
        gave = ost.bytes / (self.system.seconds * busy) / self.speeds[place]
        return max(least, min(highest, gave))
