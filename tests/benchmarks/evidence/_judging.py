"""What tarazu says of generated incidents: which OSTs are called slow, when, and which are called wrongly."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from tarazu.stats import slow_osts
from tarazu.stats.slow_osts import SlowOstFinder
from tarazu.wire.reports import OstReport
from tests.benchmarks.evidence._incidents import SICK, SYSTEMS, WELL, Site, Stretch, System
from tests.benchmarks.evidence._slow_broker import SlowBroker

GRACE_S = 300.0
"""What is called so soon after an incident was seen in it: its last I/Os end, and are reported, later."""
BUSY_IOS = 20
"""An OST with fewer I/Os in an incident cannot be known to be slow."""
RAISED = 4.0
"""Times the proof that is asked for, so that scores go on beyond what calls an OST slow: for the ROC."""


PEERS, OWN, BROKER = "peers only", "and own history", "SlowBrokerFinder's rule"
"""Ways to judge."""


class Outcome(NamedTuple):
    """One stretch, by one way to judge."""

    way: str
    osts: int
    kind: str
    factor: float
    sick: int
    """OSTs that became slow in it and were not called so before, and had I/O."""
    idle: int
    """Those that became slow and had hardly any I/O."""
    delays_s: tuple[float, ...]
    """Of those that were seen, since the incident began."""
    called: int
    """OSTs of the incident that were called slow in it: for an overload, and all at once, wrongly."""
    members: int
    false: int
    """Other OSTs that were called slow, in the incident's half."""
    false_healthy: int
    """OSTs that were called slow in the healthy half."""
    wrong_s: float
    """For so long all that is wrong stood, over OSTs."""
    healthy_s: float
    """OST-seconds in which an OST was well."""
    half_s: float
    """Length of the incident's half."""
    said_common: bool
    """Most were said to be slower than usual."""
    scores_sick: tuple[float, ...]
    scores_well: tuple[float, ...]
    """The highest of each OST in the incident's half."""


def nothing(*_: object) -> None:
    """What is usual for an OST, to judge by peers alone."""


class Detector:
    """A finder that is fed with a site's reports as mdsd is."""

    def __init__(self, system: System, way: str) -> None:
        self.way, self.system = way, system
        self.servers, self.pools = system.servers, system.pools
        self.finder: Any = SlowBroker(system.osts) if way == BROKER else SlowOstFinder("lustre")
        if way == PEERS:
            self.finder.usual.expected = nothing
        self.called: set[int] = set()
        self._recent: tuple[frozenset[int], float] = frozenset(), 0.0
        """OSTs of the last incident, and when it ended."""

    def watch(self, stretch: Stretch) -> Outcome:
        incident, system = stretch.incident, self.system
        slow_before, seen = set[int](), dict[int, float]()
        members, wrong, false, false_healthy = set[int](), set[int](), 0, 0
        wrong_s = 0.0
        scores = dict[int, float]()
        common = False
        for k, (now_s, reports) in enumerate(stretch.rounds):
            called = self._round(stretch, k, now_s, reports)
            new, self.called = set(called) - self.called, set(called)
            wrong &= self.called
            if now_s <= incident.begin_s:
                slow_before = set(self.called)
            for index in new:
                if now_s > incident.begin_s and index in incident.osts:
                    members.add(index)
                if now_s > incident.begin_s and index in incident.sick:
                    seen.setdefault(index, now_s - incident.begin_s)
                elif not self._was_sick(index, stretch.begin_s + now_s):
                    wrong.add(index)
                    if now_s <= incident.begin_s:
                        false_healthy += 1
                    elif index not in incident.osts:
                        false += 1
            wrong_s += len(wrong) * 60.0
            if now_s > incident.begin_s:
                common = common or self._common() < 1
                for index, score in self._scores().items():
                    scores[index] = max(scores.get(index, 0.0), score)
        became = incident.sick - slow_before
        busy = {i for i in became if stretch.busy[i] >= BUSY_IOS}
        length_s = len(stretch.rounds) * 60.0
        self._recent = incident.sick, stretch.begin_s + length_s
        return Outcome(
            self.way,
            system.osts,
            incident.kind,
            incident.factor,
            len(busy),
            len(became) - len(busy),
            tuple(s for i, s in seen.items() if i in busy),
            len(members),
            len(incident.osts),
            false,
            false_healthy,
            wrong_s,
            system.osts * length_s - len(incident.sick) * (incident.end_s - incident.begin_s),
            length_s - incident.begin_s,
            common,
            tuple(scores.get(i, 0.0) for i in busy),
            tuple(s for i, s in scores.items() if i not in incident.sick),
        )

    def _was_sick(self, index: int, now_s: float) -> bool:
        osts, ended_s = self._recent
        return index in osts and now_s <= ended_s + GRACE_S

    def _round(self, stretch: Stretch, k: int, now_s: float, reports: Sequence[OstReport]) -> set[int]:
        at_s, per_server = stretch.at_s[:, k].tolist(), self.system.per_server
        firsts = sorted(range(0, self.system.osts, per_server), key=at_s.__getitem__)
        for first in firsts:
            self.finder.update_server(reports[first : first + per_server], stretch.begin_s + at_s[first])
        self._estimates: Mapping[int, Any] = self.finder.estimates(self.pools, self.servers)
        return {i for i, e in self._estimates.items() if e.relative < 1}

    def _common(self) -> float:
        return float(self.finder.common())

    def _scores(self) -> dict[int, float]:
        """In proofs: 1 and more calls an OST slow."""
        unit = 1.0 if self.way == BROKER else slow_osts.PROOF / PROOF
        return {i: e.score * unit for i, e in self._estimates.items()}


PROOF = slow_osts.PROOF


class Task(NamedTuple):
    """One site's life."""

    osts: int
    seed: int
    kinds: tuple[str, ...]
    ways: tuple[str, ...]
    raised: bool = False
    """The proof that is asked for is, for the ROC."""
    warm_up: int | None = None
    """Stretches; None: all of them."""


def live(task: Task) -> list[Outcome]:
    slow_osts.PROOF = PROOF * RAISED if task.raised else PROOF
    site = Site(SYSTEMS[task.osts], task.seed)
    detectors = [Detector(site.system, way) for way in task.ways]
    found = []
    for n, stretch in enumerate(site.warm_up()):
        if task.warm_up is not None and n >= task.warm_up:
            break
        found += [d.watch(stretch) for d in detectors]
    for kind in task.kinds:
        stretch = site.stretch(kind)
        found += [d.watch(stretch) for d in detectors]
    keep = task.raised
    return [o if keep else o._replace(scores_sick=(), scores_well=()) for o in found]


def tasks(
    osts: int, first_seed: int, each: int, sites: int, ways: Sequence[str], raised: bool = False
) -> list[Task]:
    """`each` incidents of every kind, dealt to so many sites in a random order."""
    kinds = [*SICK, *WELL] * each
    np.random.default_rng([first_seed, osts]).shuffle(kinds)
    return [Task(osts, first_seed + n, tuple(kinds[n::sites]), tuple(ways), raised) for n in range(sites)]


def judge(every: Iterable[Task]) -> list[Outcome]:
    """All of them, on as many cores as there are; the longest first."""
    order = sorted(every, key=lambda task: -task.osts * len(task.kinds) * len(task.ways))
    if len(order) == 1:
        return live(order[0])
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        return [outcome for found in pool.map(live, order) for outcome in found]
