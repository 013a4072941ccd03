"""One run, event by event: requests of processes, on I/O nodes, on servers, on their disks, and back."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from random import Random
from typing import Any, NamedTuple

from tarazu.errors import BadInput
from tarazu.sim.requests.disk import Drive
from tarazu.sim.requests.outcome import Outcome, PhaseTimes, Seen
from tarazu.sim.requests.request import Access, Piece, Request
from tarazu.sim.requests.schedulers import node_scheduler
from tarazu.sim.requests.schedulers.twins import Twins
from tarazu.sim.requests.situation import INTERVAL_S, SCALE, Situation
from tarazu.sim.requests.system import GRID5000, Disk, System
from tarazu.sim.requests.workload import Phase, Workload
from tarazu.tune.detect.features import features as features_of
from tarazu.tune.observation import Direction, Observation

HOSTS = 32
"""Clients that the processes run on, in blocks; I/O nodes serve blocks of clients (section V-A)."""

GAP_BYTES = 1 << 20
"""Between two files' objects on a disk."""


class Setting(NamedTuple):
    """What schedules, at the start."""

    scheduler: str = "twins"
    """Of the I/O nodes."""
    window_s: float = 1e-3
    """Of TWINS."""


class Change(NamedTuple):
    """The system is another one from some time on."""

    at_s: float
    disk: Disk
    servers: tuple[int, ...] = ()
    """Which get that disk; empty: all."""


Controller = Callable[[float, Sequence[Seen]], float | None]
"""Asked at the end of each interval with the time and what each I/O node saw; answers TWINS' next window, seconds.
None: as it is."""


def simulate(
    work: Situation | Workload,
    setting: Setting = Setting(),  # noqa: B008
    seed: int = 0,
    *,
    controller: Controller | None = None,
    system: System = GRID5000,
    changes: Sequence[Change] = (),
    part: int = SCALE,
    interval_s: float = INTERVAL_S,
    until_s: float = math.inf,
    features: bool = False,
    requests: bool = False,
) -> Outcome:
    """Run it until all bytes have moved, or until a time.

    part: of a situation only the first 1/part is run; a workload says it itself. features: observations have those of
    the requests' offsets, for whoever detects patterns; requests: Seen has each request that arrived. Both take time.
    Raises BadInput.
    """
    if isinstance(work, Situation):
        work = Workload(work.nodes, (work.phase(part),))
    return _Run(
        work, setting, seed, controller, system, changes, interval_s, until_s, features, requests
    ).run()


class _Node:
    """An I/O node."""

    __slots__ = (
        *(
            "arrived",
            "busy",
            "bytes",
            "changed_s",
            "count",
            "demand",
            "files",
            "inside",
            "link_in_s",
            "link_out_s",
        ),
        *("log", "number", "scheduler", "wake_s"),
    )

    def __init__(self, number: int, scheduler: Any) -> None:
        self.number, self.scheduler = number, scheduler
        self.arrived: list[Piece] = []
        """Since the scheduler was asked last."""
        self.busy = 0
        """Threads with a dispatch under way."""
        self.wake_s = math.inf
        self.link_in_s = self.link_out_s = 0.0
        """When the link is free again."""
        self.inside = 0
        """Requests that have arrived and are not done."""
        self.changed_s = 0.0
        self.reset()

    def reset(self) -> None:
        """A new interval."""
        self.bytes, self.count = [0, 0], [0, 0]
        self.files: tuple[set[int], set[int]] = (set(), set())
        self.demand = 0.0
        """Integral of `inside`."""
        self.log: list[tuple[int, int, int, bool]] = []


class _Server:
    __slots__ = ("drive", "idle", "queue", "told")

    def __init__(self, disk: Disk) -> None:
        self.drive = Drive(disk)
        self.queue: deque[Access] = deque()
        self.told: list[Access] = []
        """What the disk has been told of and has not begun."""
        self.idle = True


class _Run:
    def __init__(
        self,
        work: Workload,
        setting: Setting,
        seed: int,
        controller: Controller | None,
        system: System,
        changes: Sequence[Change],
        interval_s: float,
        until_s: float,
        features: bool,
        requests: bool,
    ) -> None:
        if work.nodes < 1 or not work.phases:
            raise BadInput(
                "workload", "an I/O node and a phase, at least", f"{work.nodes} and {len(work.phases)}"
            )
        if not setting.window_s > 0 or not interval_s > 0:
            raise BadInput(
                "window and interval", "seconds above 0", f"{setting.window_s:g} and {interval_s:g}"
            )
        self._system, self._work, self._setting = system, work, setting
        self._controller, self._interval_s, self._until_s = controller, interval_s, until_s
        self._features, self._requests, self._log = features, requests, features or requests
        self._random = Random(seed)
        self._window_s = setting.window_s
        self._nodes = [
            _Node(n, node_scheduler(setting.scheduler, n, system.servers, setting.window_s, system.aggregate))
            for n in range(work.nodes)
        ]
        self._servers = [_Server(system.disk) for _ in range(system.servers)]
        self._heap: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._events = 0
        self._now = 0.0
        self._phase = -1
        self._streams: list[Iterator[tuple[int, int, bool]]] = []
        self._home: list[_Node] = []
        self._running = 0
        self._times: list[PhaseTimes] = []
        self._begin_s = 0.0
        self._moved = 0
        """Bytes of the phase that have."""
        self._bases: dict[tuple[int, int], int] = {}
        self._placed = [0.0] * system.servers
        self._first: dict[int, int] = {}
        self._seen: list[Seen] = []
        self._accesses = 0
        self._interval_begin_s = 0.0
        for change in changes:
            self._at(change.at_s, self._change, change)
        self._at(interval_s, self._tick, None)

    def _at(self, time_s: float, call: Callable[[Any], None], argument: Any) -> None:
        self._events += 1
        heappush(self._heap, (time_s, self._events, call, argument))

    def run(self) -> Outcome:
        self._next_phase(0.0)
        heap = self._heap
        phases = len(self._work.phases)
        while self._phase < phases and heap[0][0] <= self._until_s:
            self._now, _, call, argument = heappop(heap)
            call(argument)
        if self._phase < phases:
            self._now = self._until_s
            phase = self._work.phases[self._phase]
            self._times.append(PhaseTimes(phase.name, self._begin_s, self._now, self._moved))
        if self._now - self._interval_begin_s >= self._interval_s / 2:
            self._look()
        end_s = self._times[-1].end_s
        return Outcome(
            end_s,
            sum(phase.bytes for phase in self._times),
            tuple(self._times),
            tuple(self._seen),
            tuple(server.drive.busy_s for server in self._servers),
            tuple(server.drive.turned_s for server in self._servers),
            self._accesses,
            self._events,
        )

    # Phases and processes

    def _next_phase(self, now: float) -> None:
        self._phase += 1
        if self._phase >= len(self._work.phases):
            return
        phase = self._work.phases[self._phase]
        now += phase.pause_s
        self._begin_s = now
        self._moved = 0
        self._place(phase)
        self._streams = [iter(phase.accesses(process)) for process in range(phase.processes)]
        self._home = [
            self._nodes[process * len(self._nodes) // phase.processes] for process in range(phase.processes)
        ]
        self._running = phase.processes
        for process in range(phase.processes):
            self._issue(process, now)

    def _place(self, phase: Phase) -> None:
        """Where the objects of its files lie on the servers' disks: each in one piece, one after another, in an order
        by chance. Files that an earlier phase has written lie where they were."""
        files = list(range(phase.files * (2 if phase.operation == "both" else 1)))
        self._random.shuffle(files)
        row = self._system.stripe_bytes * self._system.servers
        size = -(-phase.file_bytes // row) * self._system.stripe_bytes
        for file in files:
            # A shared file is one file, whatever the phase; files of processes are others.
            name = file if phase.shared else file + 2
            if (name, 0) in self._bases:
                continue
            self._first[name] = 0 if phase.shared else self._random.randrange(self._system.servers)
            for server in range(self._system.servers):
                if not self._placed[server]:
                    self._placed[server] = self._random.uniform(0.1, 0.5) * self._system.disk.capacity_bytes
                base = int(self._placed[server])
                self._bases[name, server] = base
                self._placed[server] = base + size + GAP_BYTES

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
        phase = self._work.phases[self._phase]
        node = self._home[process]
        size = phase.request_bytes
        leaves = now + self._random.expovariate(1.0) * self._system.client_s
        arrives = leaves + self._system.hop_s
        if write:
            begin = leaves if leaves > node.link_in_s else node.link_in_s
            node.link_in_s = begin + size / self._system.link_bytes_per_s
            arrives = node.link_in_s + self._system.hop_s
        request = Request(process, node.number, file if phase.shared else file + 2, offset, size, write)
        self._at(arrives, self._arrive, request)

    # I/O nodes

    def _arrive(self, request: Request) -> None:
        now = self._now
        node = self._nodes[request.node]
        node.demand += node.inside * (now - node.changed_s)
        node.changed_s = now
        node.inside += 1
        request.arrived = now
        file = request.file
        node.files[request.write].add(file)
        if self._log:
            node.log.append((file, request.offset, request.bytes, request.write))
        self._split(request, node.arrived)
        self._dispatch(node)

    def _split(self, request: Request, into: list[Piece]) -> None:
        """By server; what lies on one server in several stripes is contiguous there, and one piece."""
        stripe, servers = self._system.stripe_bytes, self._system.servers
        file, offset = request.file, request.offset
        first = self._first[file]
        end = offset + request.bytes
        pieces: dict[int, Piece] = {}
        while offset < end:
            number, within = divmod(offset, stripe)
            size = min(stripe - within, end - offset)
            server = (number + first) % servers
            start = self._bases[file, server] + number // servers * stripe + within
            before = pieces.get(server)
            if before is not None and before.end == start:
                before.end += size
            else:
                pieces[server] = Piece(request, server, start, size)
            offset += size
        request.left = len(pieces)
        into.extend(pieces.values())

    def _dispatch(self, node: _Node) -> None:
        system = self._system
        now = self._now
        while node.busy < system.threads:
            arrived, node.arrived = node.arrived, []
            batch = node.scheduler.next(arrived, now)
            if isinstance(batch, float):
                if batch < node.wake_s:
                    node.wake_s = batch
                    self._at(batch, self._wake, node)
                return
            node.busy += 1
            access = Access(node.number, batch)
            leaves = now + system.request_s
            if access.write:
                begin = leaves if leaves > node.link_out_s else node.link_out_s
                node.link_out_s = leaves = begin + (access.end - access.start) / system.link_bytes_per_s
            self._at(leaves + system.hop_s, self._served, access)

    def _wake(self, node: _Node) -> None:
        if self._now >= node.wake_s:
            node.wake_s = math.inf
            self._dispatch(node)

    # Servers

    def _served(self, access: Access) -> None:
        server = self._servers[access.server]
        server.queue.append(access)
        self._tell(server)

    def _tell(self, server: _Server) -> None:
        """The disk is told of as many accesses as the server has threads, and does the one that it can do first."""
        now = self._now
        told = server.told
        while server.queue and len(told) + (not server.idle) < self._system.server_threads:
            access = server.queue.popleft()
            access.queued = now
            told.append(access)
        if server.idle and told:
            if len(told) == 1:
                access = told.pop()
            else:
                drive = server.drive
                access = min(told, key=lambda one: drive.position_s(one.start, one.write, now))
                told.remove(access)
            server.idle = False
            self._accesses += 1
            self._at(server.drive.serve(access, now), self._transferred, access)

    def _transferred(self, access: Access) -> None:
        server = self._servers[access.server]
        server.idle = True
        self._tell(server)
        node = self._nodes[access.node]
        arrives = self._now + self._system.hop_s
        if not access.write:
            begin = max(self._now, node.link_in_s)
            node.link_in_s = begin + (access.end - access.start) / self._system.link_bytes_per_s
            arrives = node.link_in_s + self._system.hop_s
        self._at(arrives, self._answered, access)

    def _answered(self, access: Access) -> None:
        now = self._now
        system = self._system
        node = self._nodes[access.node]
        node.busy -= 1
        for piece in access.pieces:
            request = piece.request
            request.left -= 1
            if request.left:
                continue
            write = request.write
            node.demand += node.inside * (now - node.changed_s)
            node.changed_s = now
            node.inside -= 1
            node.bytes[write] += request.bytes
            node.count[write] += 1
            back = now + system.hop_s
            if not write:
                begin = max(now, node.link_out_s)
                node.link_out_s = begin + request.bytes / system.link_bytes_per_s
                back = node.link_out_s + system.hop_s
            self._at(back, self._finished, request)
        self._dispatch(node)

    def _finished(self, request: Request) -> None:
        self._moved += request.bytes
        self._issue(request.process, self._now)

    # Intervals

    def _tick(self, _: None) -> None:
        seen = self._look()
        if self._controller is not None:
            window_s = self._controller(self._now, seen)
            if window_s is not None:
                self._change_window(window_s)
        self._at(self._interval_begin_s + self._interval_s, self._tick, None)

    def _change_window(self, window_s: float) -> None:
        if not window_s > 0:
            raise BadInput("window", "seconds above 0", f"{window_s:g}")
        self._window_s = window_s
        for node in self._nodes:
            if isinstance(node.scheduler, Twins):
                node.scheduler.change_window(window_s, self._now)
                node.wake_s = math.inf
                self._dispatch(node)

    def _look(self) -> list[Seen]:
        now = self._now
        number = min(self._phase, len(self._work.phases) - 1)
        pattern = self._work.phases[number].pattern(len(self._nodes))
        elapsed_s = now - self._interval_begin_s
        found = []
        for node in self._nodes:
            node.demand += node.inside * (now - node.changed_s)
            node.changed_s = now
            read, write = (
                Direction(
                    node.bytes[way], node.count[way], len(node.files[way]), self._features_of(node, way)
                )
                for way in (False, True)
            )
            observation = Observation(elapsed_s, read, write, node.demand / elapsed_s)
            log = tuple(node.log) if self._requests else ()
            found.append(Seen(now, node.number, observation, pattern, self._window_s, number, log))
            node.reset()
        self._seen += found
        self._interval_begin_s = now
        return found

    def _features_of(self, node: _Node, way: bool) -> tuple[float, ...]:
        if not self._features:
            return ()
        return features_of((offset, size, file) for file, offset, size, write in node.log if write == way)

    def _change(self, change: Change) -> None:
        for number in change.servers or range(len(self._servers)):
            self._servers[number].drive.change(change.disk)
