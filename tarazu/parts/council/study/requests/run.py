"""A run, event by event: requests of processes, on I/O nodes, on servers, on their disks, and back.

Each request costs four events: at its I/O node, at the server, when the disk is done, back at the I/O node. What is
looked up at each of them is kept at hand; this is where a study's time goes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from math import log
from random import Random

from tarazu.parts.council.pattern import Direction, Observation
from tarazu.parts.council.study.requests.disk import Drive
from tarazu.parts.council.study.requests.outcome import (
    NodeInterval,
    PhaseTimes,
    RequestsOutcome,
    Setting,
)
from tarazu.parts.council.study.requests.request import SHARED, Access, Piece, Placement, Request
from tarazu.parts.council.study.requests.schedulers import (
    NodeScheduler,
    Twins,
    node_scheduler,
)
from tarazu.parts.council.study.requests.situation import INTERVAL_S, SCALE, Situation, Workload
from tarazu.parts.council.study.requests.system import GRID5000, Disk, RequestSystem
from tarazu.sim.kernel.calls import Calls

Controller = Callable[[float, Sequence[NodeInterval]], float]
"""Asked at the end of each interval with the time and what each I/O node saw; answers TWINS' next window, seconds."""


class IoNode:
    """An I/O node."""

    def __init__(self, number: int, scheduler: NodeScheduler) -> None:
        self.number, self.scheduler = number, scheduler
        self.arrived: list[Piece] = []
        """Since the scheduler was asked last."""
        self.busy = 0
        """Threads with a dispatch under way."""
        self.wake_s = math.inf
        self.in_s = self.out_s = 0.0
        """When the link's two directions are free again."""
        self.inside = 0
        """Requests that have arrived and are not done."""
        self.changed_s = 0.0
        self.reset()

    def reset(self) -> None:
        """A new interval."""
        self.bytes, self.count = [0, 0], [0, 0]
        self.demand = 0.0
        """Integral of `inside`."""


class DataServer:
    """A data server with its disk, which takes accesses as they come."""

    def __init__(self, disk: Disk) -> None:
        self.drive = Drive(disk)
        self.arrived: deque[Access] = deque()
        self.idle = True


class RequestRun:
    """One run, as of `simulate`."""

    def __init__(
        self,
        work: Workload,
        setting: Setting,
        seed: int,
        controller: Controller | None,
        system: RequestSystem,
        interval_s: float,
    ) -> None:
        self._work, self._window_s, self._interval_s = work, setting.window_s, interval_s
        self._controller = controller
        self._random = Random(seed)
        self._hop_s, self._per_byte_s, self._client_s = (
            system.hop_s,
            1 / system.link_bytes_per_s,
            system.client_s,
        )
        self._threads, self._request_s = system.threads, system.request_s
        self._nodes = [
            IoNode(
                n, node_scheduler(setting.scheduler, n, system.servers, setting.window_s, system.aggregate)
            )
            for n in range(work.nodes)
        ]
        self._servers = [DataServer(system.disk) for _ in range(system.servers)]
        self._calls = Calls()
        self._at = self._calls.at
        self._phase = -1
        self._phase_bytes = 0
        self._shift = 0
        self._streams: list[Iterator[tuple[int, int, bool]]] = []
        self._home: list[IoNode] = []
        self._running = 0
        self._times: list[PhaseTimes] = []
        self._begin_s = 0.0
        self._placement = Placement(system, self._random)
        self._cut = self._placement.cut
        self._seen: list[NodeInterval] = []
        self._accesses = 0
        self._interval_begin_s = 0.0
        self._at(interval_s, self._tick, None)

    def run(self) -> RequestsOutcome:
        self._next_phase(0.0)
        self._calls.run()
        if self._calls.now - self._interval_begin_s >= self._interval_s / 2:
            self._look(self._calls.now)
        return RequestsOutcome(
            self._times[-1].end_s,
            sum(phase.bytes for phase in self._times),
            tuple(self._times),
            tuple(self._seen),
            tuple(server.drive.busy_s for server in self._servers),
            tuple(server.drive.turned_s for server in self._servers),
            self._accesses,
        )

    # Phases and processes

    def _next_phase(self, now: float) -> None:
        self._phase += 1
        if self._phase >= len(self._work.phases):
            self._calls.stop()
            return
        phase = self._work.phases[self._phase]
        self._begin_s = now
        self._phase_bytes = phase.request_bytes
        self._placement.place(phase)
        # Files of processes have other numbers than those that are shared, of which there are two at most.
        self._shift = SHARED if not phase.shared else 0
        self._streams = [iter(phase.accesses(process)) for process in range(phase.processes)]
        # Processes in blocks: clients are equally distributed among the I/O nodes (paper, section V-A).
        self._home = [
            self._nodes[process * len(self._nodes) // phase.processes] for process in range(phase.processes)
        ]
        self._running = phase.processes
        for process in range(phase.processes):
            self._issue(process, now)

    def _issue(self, process: int, now: float) -> None:
        """The process's next request, if it has one."""
        following = next(self._streams[process], None)
        if following is None:
            self._running -= 1
            if not self._running:
                phase = self._work.phases[self._phase]
                self._times.append(PhaseTimes(phase.name, self._begin_s, now, phase.bytes))
                self._next_phase(now)
            return
        file, offset, write = following
        node = self._home[process]
        size = self._phase_bytes
        leaves = now - log(1.0 - self._random.random()) * self._client_s
        if write:
            leaves = max(leaves, node.in_s)
            node.in_s = leaves = leaves + size * self._per_byte_s
        request = Request(process, node, file + self._shift, offset, size, write)
        self._at(leaves + self._hop_s, self._arrive, request)

    # I/O nodes

    def _arrive(self, now: float, request: Request) -> None:
        node = request.node
        node.demand += node.inside * (now - node.changed_s)
        node.changed_s = now
        node.inside += 1
        self._cut(request, node.arrived)
        if node.busy < self._threads:
            self._dispatch(now, node)

    def _dispatch(self, now: float, node: IoNode) -> None:
        take = node.scheduler.next
        while node.busy < self._threads:
            arrived = node.arrived
            if arrived:
                node.arrived = []
            batch = take(arrived, now)
            if batch.__class__ is float:
                if batch < node.wake_s:  # type: ignore[operator]
                    node.wake_s = batch  # type: ignore[assignment]
                    self._at(batch, self._wake, node)  # type: ignore[arg-type]
                return
            node.busy += 1
            access = Access(node, batch)  # type: ignore[arg-type]
            leaves = now + self._request_s
            if access.write:
                leaves = max(leaves, node.out_s)
                node.out_s = leaves = leaves + (access.end - access.start) * self._per_byte_s
            self._at(leaves + self._hop_s, self._served, access)

    def _wake(self, now: float, node: IoNode) -> None:
        if now >= node.wake_s:
            node.wake_s = math.inf
            self._dispatch(now, node)

    # Servers

    def _served(self, now: float, access: Access) -> None:
        server = self._servers[access.server]
        server.arrived.append(access)
        if server.idle:
            self._serve(now, server)

    def _serve(self, now: float, server: DataServer) -> None:
        if server.arrived:
            access = server.arrived.popleft()
            access.queued = now
            server.idle = False
            self._accesses += 1
            self._at(server.drive.serve(access, now), self._transferred, access)

    def _transferred(self, now: float, access: Access) -> None:
        server = self._servers[access.server]
        server.idle = True
        self._serve(now, server)
        if not access.write:
            node = access.node
            now = max(now, node.in_s)
            node.in_s = now = now + (access.end - access.start) * self._per_byte_s
        self._at(now + self._hop_s, self._answered, access)

    def _answered(self, now: float, access: Access) -> None:
        node = access.node
        node.busy -= 1
        for piece in access.pieces:
            request = piece.request
            request.left -= 1
            if request.left:
                continue
            write, size = request.write, request.bytes
            node.demand += node.inside * (now - node.changed_s)
            node.changed_s = now
            node.inside -= 1
            node.bytes[write] += size
            node.count[write] += 1
            back = now
            if not write:
                back = max(back, node.out_s)
                node.out_s = back = back + size * self._per_byte_s
            self._at(back + self._hop_s, self._finished, request)
        self._dispatch(now, node)

    def _finished(self, now: float, request: Request) -> None:
        self._issue(request.process, now)

    # Intervals

    def _tick(self, now: float, _: None) -> None:
        seen = self._look(now)
        window_s = self._controller(now, seen) if self._controller is not None else self._window_s
        if window_s != self._window_s:
            self._window_s = window_s
            for node in self._nodes:
                if isinstance(node.scheduler, Twins):
                    node.scheduler.change_window(window_s, now)
                    node.wake_s = math.inf
                    self._dispatch(now, node)
        self._at(self._interval_begin_s + self._interval_s, self._tick, None)

    def _look(self, now: float) -> list[NodeInterval]:
        number = min(self._phase, len(self._work.phases) - 1)
        pattern = self._work.phases[number].pattern
        elapsed_s = now - self._interval_begin_s
        intervals = []
        for node in self._nodes:
            node.demand += node.inside * (now - node.changed_s)
            node.changed_s = now
            read, write = (Direction(node.bytes[way], node.count[way]) for way in (False, True))
            observation = Observation(elapsed_s, read, write, node.demand / elapsed_s)
            intervals.append(NodeInterval(now, node.number, observation, pattern, self._window_s, number))
            node.reset()
        self._seen += intervals
        self._interval_begin_s = now
        return intervals


def simulate(
    work: Situation | Workload,
    setting: Setting = Setting(),  # noqa: B008
    seed: int = 0,
    *,
    controller: Controller | None = None,
    system: RequestSystem = GRID5000,
    part: int = SCALE,
    interval_s: float = INTERVAL_S,
) -> RequestsOutcome:
    """Run it until all bytes have moved. part: of a situation only the first 1/part is run, a workload says it."""
    if isinstance(work, Situation):
        work = Workload(work.nodes, (work.phase(part),))
    return RequestRun(work, setting, seed, controller, system, interval_s).run()
