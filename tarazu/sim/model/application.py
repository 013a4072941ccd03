"""A job: its ranks do their operations one after another, and meet at barriers (paper, section 6.2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from simpy.events import Event, ProcessGenerator

from tarazu.allocate import quality
from tarazu.errors import BadInput
from tarazu.model import CreateRequest, FilePlacement, Layout
from tarazu.predict.waves import waves_of
from tarazu.sim.model import striping
from tarazu.sim.model.client import JobPlans
from tarazu.sim.model.cluster import Cluster
from tarazu.sim.model.links import Direction, Floats, Numbers
from tarazu.sim.model.mds import PlacedFile, check_osts
from tarazu.sim.model.outcome import JobOutcome
from tarazu.sim.model.requests import Asking
from tarazu.sim.model.spec import Job
from tarazu.sim.workloads.workload import OperationKind, Workload

Operation = tuple[int, int, int, float, float, int, int, int]
"""rank, file, kind, delay_s, earliest_s, offset, bytes, span_bytes"""
MOVES = {int(OperationKind.WRITE): Direction.WRITE, int(OperationKind.READ): Direction.READ}


RANK_BYTES_PER_S = 2e7
"""What a rank is taken to move while all do: tells apart what has no times of its own."""


def written_s(work: Workload) -> tuple[Floats, Floats]:
    """(files,) seconds after the start from which and until which each is written; infinite and -1 for one that is not.

    Ranks go through their delays and bytes, and wait for one another at barriers.
    """
    operations = work.operations
    at_s, until_s = np.full(len(work.files), np.inf), np.full(len(work.files), -1.0)
    if not len(operations):
        return at_s, until_s
    ranks = operations["rank"].astype(np.int64)
    takes_s = operations["delay_s"] + operations["bytes"] / RANK_BYTES_PER_S
    barrier = operations["kind"] == OperationKind.BARRIER
    starts = np.flatnonzero(np.r_[True, ranks[1:] != ranks[:-1]])
    lengths = np.diff(np.r_[starts, len(ranks)])

    def since_start(values: Floats) -> Floats:
        """Sum of what the same rank did before each operation."""
        before = np.cumsum(values) - values
        sums: Floats = before - np.repeat(before[starts], lengths)
        return sums

    phase = since_start(barrier.astype(np.float64)).astype(np.int64)
    # A rank's clock at the start of each of its phases is the phase's: that of the slowest.
    phases = np.flatnonzero(np.r_[True, (ranks[1:] != ranks[:-1]) | (phase[1:] != phase[:-1])])
    own = np.cumsum(takes_s) - takes_s
    own -= np.repeat(own[phases], np.diff(np.r_[phases, len(ranks)]))
    longest = np.zeros(int(phase.max()) + 1)
    np.maximum.at(longest, phase, own + takes_s)
    begins = np.cumsum(longest) - longest
    clock = np.maximum(begins[phase] + own + operations["delay_s"], operations["earliest_s"])
    writing = np.isin(operations["kind"], [OperationKind.CREATE, OperationKind.WRITE])
    touching = np.flatnonzero(writing & (operations["file"] >= 0))
    file = operations["file"][touching]
    np.minimum.at(at_s, file, clock[touching])
    np.maximum.at(until_s, file, clock[touching] + operations["bytes"][touching] / RANK_BYTES_PER_S)
    return at_s, until_s


class SimulatedApplication:
    """One job on the simulated cluster."""

    def __init__(self, cluster: Cluster, job: Job, waited: bool = True) -> None:
        """`waited`: the run ends when it has ended."""
        self.cluster, self.job, self.waited = cluster, job, waited
        self.env = cluster.env
        work = job.workload
        self.files: list[PlacedFile | None] = [None] * len(work.files)
        self.plans: dict[int, FilePlacement] = {}
        """File → where the policy wants it."""
        self.plan: JobPlans | None = None
        """From history and statistics."""
        self.placed = np.zeros(cluster.spec.osts, np.int64)
        """Bytes of new files on each OST."""
        self.left_to_lustre = 0
        self.moved = [0, 0]
        self._moving = [0, 0]
        self._since = [0.0, 0.0]
        self._moving_s = [0.0, 0.0]
        self.start_s = self.end_s = 0.0
        self._planned_left: Floats = np.zeros(0)
        self._kept = self._kept_shares()
        self._barriers: dict[int, tuple[Event, int]] = {}
        self._meeting = self._barrier_sizes()
        costs = cluster.spec.costs
        self._asking = Asking(costs, cluster.network, work) if costs else None
        self._open = self._closes()
        self.layouts = self._find_layouts()
        for file, layout in zip(work.files, self.layouts, strict=True):
            check_osts(file.osts or (), cluster.spec.osts, layout, file.key)
        cluster.io_routers.check(work.name, job.first_node + work.nodes - 1)

    @property
    def name(self) -> str:
        return self.job.workload.name

    # What is known before

    def _of_kind(self, *kinds: OperationKind) -> NDArray[np.void]:
        operations = self.job.workload.operations
        return operations[np.isin(operations["kind"], kinds) & (operations["file"] >= 0)]

    def _kept_shares(self) -> Floats:
        """Of the bytes written to each file: the share that takes space, for some write in place."""
        files = self.job.workload.files
        writes = self._of_kind(OperationKind.WRITE)
        written = np.bincount(writes["file"], writes["bytes"].astype(np.float64), len(files))
        sizes = np.array([0 if f.exists else f.size_bytes for f in files], np.float64)
        kept: Floats = np.minimum(1.0, sizes / np.maximum(written, 1.0))
        return kept

    def _barrier_sizes(self) -> list[int]:
        """How many ranks meet at the first barrier, the second, ..."""
        operations = self.job.workload.operations
        of_rank = np.bincount(operations["rank"][operations["kind"] == OperationKind.BARRIER])
        return [int((of_rank > n).sum()) for n in range(int(of_rank.max(initial=0)))]

    def _closes(self) -> Numbers:
        closes = self._of_kind(OperationKind.CLOSE)
        return np.bincount(closes["file"], minlength=len(self.job.workload.files))

    def created(self) -> list[int]:
        """New files, in the order in which they are expected to be created: by time, then by rank."""
        work = self.job.workload
        first = self._of_kind(
            OperationKind.CREATE, OperationKind.OPEN, OperationKind.WRITE, OperationKind.READ
        )
        ranks, places = first["rank"], np.arange(len(first))
        starts = np.flatnonzero(np.r_[True, ranks[1:] != ranks[:-1]]) if len(first) else places
        nth = places - np.repeat(starts, np.diff(np.r_[starts, len(first)]))
        order = np.lexsort((ranks, nth, first["earliest_s"]))
        seen = dict.fromkeys(first["file"][order].tolist())
        return [f for f in seen if not work.files[f].exists]

    def _find_layouts(self) -> list[Layout]:
        """Of all files: as logged, or by the job's rule."""
        work = self.job.workload
        without = [n for n, file in enumerate(work.files) if file.layout is None]
        layouts = [file.layout for file in work.files]
        wanted = [self._expected(n, *sharing) for n, sharing in zip(without, self._sharing(without))]
        given = striping.layouts(striping.rule(self.job.striping), wanted, self.cluster.spec.osts)
        for n, layout in zip(without, given, strict=True):
            layouts[n] = layout
        return [layout for layout in layouts if layout is not None]

    def _expected(self, file: int, writers: int, contiguous: bool) -> striping.Expected:
        return striping.Expected(self.job.workload.files[file].size_bytes, writers, contiguous)

    def _sharing(self, files: Iterable[int]) -> list[tuple[int, bool]]:
        """(ranks that write it, whether each writes one piece) of each file."""
        writes = self._of_kind(OperationKind.WRITE)
        order = np.lexsort((writes["offset"], writes["rank"], writes["file"]))
        ops = writes[order]
        same = (ops["file"][1:] == ops["file"][:-1]) & (ops["rank"][1:] == ops["rank"][:-1])
        goes_on = ops["offset"][1:] == ops["offset"][:-1] + ops["span_bytes"][:-1]
        count = len(self.job.workload.files)
        writers = np.bincount(ops["file"], minlength=count)
        writers -= np.bincount(ops["file"][1:][same], minlength=count)
        broken = np.bincount(ops["file"][1:][same & ~goes_on], minlength=count)
        sparse = np.bincount(ops["file"][ops["span_bytes"] > ops["bytes"]], minlength=count)
        return [(max(1, int(writers[f])), not broken[f] and not sparse[f]) for f in files]

    # Its life

    def play(self) -> ProcessGenerator:
        """The whole job."""
        if self.job.start_s > 0:
            yield self.env.timeout(self.job.start_s)
        self.start_s = self.env.now
        self._put_files()
        work = self.job.workload
        ranks = work.operations["rank"]
        starts = np.flatnonzero(np.r_[True, ranks[1:] != ranks[:-1]]) if len(ranks) else ranks
        ends = np.r_[starts[1:], len(ranks)]
        running = []
        for start, end in zip(starts.tolist(), ends.tolist()):
            operations = work.operations[start:end]
            node = self.job.first_node + int(ranks[start]) // work.ranks_per_node
            calls = [] if work.call_bytes is None else work.call_bytes[start:end].tolist()
            running.append(self.env.process(self._rank(node, operations.tolist(), calls)))
        for rank in running:
            # Not AllOf: of 65,536 events it looks at all after each.
            if not rank.processed:
                yield rank
        self.end_s = self.env.now
        self._release()

    def _put_files(self) -> None:
        """Files that are there already; then the plan of the new ones."""
        work, cluster = self.job.workload, self.cluster
        planner = None if self.job.background else cluster.planner
        existing = [n for n, file in enumerate(work.files) if file.exists]
        unplaced = []
        for n in existing:
            named = cluster.names.get(work.files[n].key)
            if named is None:
                unplaced.append((n, self._file(n, self.layouts[n])))
            self.files[n] = named.file if named else unplaced[-1][1]
        by_policy = [(n, f) for n, f in unplaced if work.files[n].osts is None]
        requests = [CreateRequest(work.files[n].size_bytes, f.layout) for n, f in by_policy]
        if planner and by_policy and requests:
            for (_, file), placement in zip(by_policy, planner.plan(requests, self.env.now)):
                file.put(placement)
        cluster.mds.put_existing([file for _, file in unplaced])
        for n, file in unplaced:
            file.takes(*file.filled())
            cluster.osts.occupy(*file.filled())
            cluster.put(work.files[n].key, file, self)
        if cluster.client and not self.job.background:
            self.plan = cluster.client.plan(work, striping.rule(self.job.striping), self.env.now)
            self.env.process(self._plan_on(self.plan))
        elif planner and planner.plans:
            self._plan([n for n in self.created() if work.files[n].osts is None])

    def _plan(self, new: Sequence[int]) -> None:
        planner = self.cluster.planner
        requests = [
            CreateRequest(self.job.workload.files[n].size_bytes, self.layouts[n], writers=writers)
            for n, (writers, _) in zip(new, self._sharing(new), strict=True)
        ]
        at_s, until_s = written_s(self.job.workload)
        of_wave = waves_of(at_s[new].tolist(), until_s[new].tolist(), [r.size_bytes for r in requests])
        placements = planner.plan(requests, self.env.now, of_wave)
        if placements:
            # Those without OSTs are left to Lustre.
            self.plans = {n: p for n, p in zip(new, placements, strict=True) if p.osts}
            self._planned_left = planner.bytes_of(requests, placements)
            planner.promised += self._planned_left

    def _plan_on(self, plan: JobPlans) -> ProcessGenerator:
        """Later plans of a long job, each in time."""
        while plan.next_s is not None:
            yield self.env.timeout(max(0.0, self.start_s + plan.next_s - self.env.now))
            if self not in self.cluster.running:
                return
            plan.ask(self.env.now)

    def _release(self) -> None:
        if self.plan:
            sizes = {n: file.size_bytes for n, file in enumerate(self.job.workload.files)}
            self.plan.ended(sizes, self._sharing(sizes), self.env.now)
        if len(self._planned_left):
            self.cluster.planner.promised -= self._planned_left
            self._planned_left = np.zeros(0)

    def _file(self, number: int, layout: Layout) -> PlacedFile:
        """A file without objects, or with those that were logged."""
        given = self.job.workload.files[number]
        file = PlacedFile(layout, given.size_bytes)
        if given.osts is not None:
            file.put(FilePlacement(given.osts))
        return file

    def _created(self, number: int) -> PlacedFile:
        """The file; made now if nobody has yet."""
        file = self.files[number]
        if file is None:
            given = self.job.workload.files[number]
            planned = self.plan.find(number) if self.plan and given.osts is None else None
            file = self._file(number, planned.layout if planned else self.layouts[number])
            self.files[number] = file
            wanted = planned.placement if planned else self.plans.get(number)
            followed = self.cluster.mds.create(file, wanted)
            self.left_to_lustre += not followed and given.osts is None
            if self.plan:
                self.plan.created(number, planned, followed, self.env.now)
            self.cluster.put(given.key, file, self)
        return file

    def _rank(self, node: int, operations: Sequence[Operation], calls: Sequence[int]) -> ProcessGenerator:
        env, start_s = self.env, self.start_s
        met = 0
        for at, operation in enumerate(operations):
            _, number, kind, delay_s, earliest_s, offset, size_bytes, span_bytes = operation
            wait_s = max(delay_s, start_s + earliest_s - env.now)
            if wait_s > 0:
                yield env.timeout(wait_s)
            direction = MOVES.get(kind)
            if direction is not None:
                if size_bytes > 0:
                    call_bytes = calls[at] if calls else 0
                    yield from self._move(node, number, direction, offset, size_bytes, span_bytes, call_bytes)
                if self.plan and direction is Direction.WRITE:
                    self.plan.wrote(number, env.now)
            elif kind == OperationKind.BARRIER:
                yield self._barrier(met)
                met += 1
            elif kind == OperationKind.CLOSE:
                self._open[number] -= 1
                if not self._open[number]:
                    self._closed(number)
            else:
                new = self.files[number] is None
                yield from self.cluster.mds.serve(
                    self.layouts[number].components[0].stripe_count if new else 0
                )
                self._created(number)

    def _barrier(self, number: int) -> Event:
        event, here = self._barriers.get(number) or (self.env.event(), 0)
        here += 1
        self._barriers[number] = (event, here)
        if here == self._meeting[number]:
            del self._barriers[number]
            event.succeed()
        return event

    def _move(
        self,
        node: int,
        number: int,
        direction: Direction,
        offset: int,
        size_bytes: int,
        span_bytes: int,
        call_bytes: int,
    ) -> ProcessGenerator:
        """One read or write: component after component, each over all its OSTs at once."""
        cluster, env = self.cluster, self.env
        file = self._created(number)
        if self.waited:
            cluster.begins(direction)
        if not self._moving[direction]:
            self._since[direction] = env.now
        self._moving[direction] += 1
        for piece in striping.pieces(file.layout, offset, size_bytes, span_bytes):
            objects = cluster.mds.instantiate(file, piece.component)
            osts, sizes = _merged(objects[piece.objects], piece.object_bytes)
            kept = self._claim(number, file, osts, sizes) if direction is Direction.WRITE else 1.0
            asked = None
            if self._asking:
                stripe_bytes = file.layout.components[piece.component].stripe_size_bytes
                gaps = span_bytes > size_bytes
                asked = self._asking.requests(
                    number, piece.component, stripe_bytes, osts, sizes, direction, call_bytes, gaps
                )
            cluster.osts.begins(osts)
            yield cluster.flow(node, osts, sizes, direction, asked)
            cluster.osts.ends(osts)
            if kept < 1:
                cluster.osts.overwrote(osts, (1 - kept) * sizes.astype(np.float64))
        self.moved[direction] += size_bytes
        self._moving[direction] -= 1
        if not self._moving[direction]:
            self._moving_s[direction] += env.now - self._since[direction]
        if self.waited:
            cluster.ends(direction)

    def _claim(self, number: int, file: PlacedFile, osts: Numbers, sizes: Numbers) -> float:
        """Take the space of a write; the share of it that is new."""
        kept = float(self._kept[number])
        if kept > 0:
            new = sizes if kept == 1 else np.floor(sizes * kept).astype(np.int64)
            self.cluster.osts.claim(osts, new, self.name)
            file.takes(osts, new)
            self.placed[osts] += new
            if len(self._planned_left):
                less = np.minimum(self._planned_left[osts], new)
                self._planned_left[osts] -= less
                self.cluster.planner.promised[osts] -= less
        return kept

    def _closed(self, number: int) -> None:
        """The last rank has closed a file."""
        if self.plan:
            self.plan.closed(number, self.job.workload.files[number].size_bytes, self.env.now)

    def outcome(self) -> JobOutcome:
        """Once it has ended; times since the start of the run."""
        since = self.cluster.run_start_s
        return JobOutcome(
            name=self.name,
            start_s=self.start_s - since,
            end_s=self.end_s - since,
            read_bytes=self.moved[Direction.READ],
            written_bytes=self.moved[Direction.WRITE],
            read_s=self._moving_s[Direction.READ],
            write_s=self._moving_s[Direction.WRITE],
            ost_cost=quality.ost_cost(dict(enumerate(self.placed.tolist()))),
            left_to_lustre=self.left_to_lustre,
        )


def _merged(osts: Numbers, sizes: Numbers) -> tuple[Numbers, Numbers]:
    """Each OST once: overstriped files have several objects on one."""
    if len(osts) < 2 or len(set(osts.tolist())) == len(osts):
        return osts, sizes
    distinct, place = np.unique(osts, return_inverse=True)
    return distinct, np.bincount(place, sizes, len(distinct)).astype(np.int64)


def check(jobs: Sequence[Job]) -> None:
    """Raises BadInput for what cannot be played."""
    for job in jobs:
        work = job.workload
        operations = work.operations
        ranks, files = operations["rank"], operations["file"]
        where = f"workload {work.name}"
        if len(ranks) and not 0 <= ranks.min() <= ranks.max() < work.ranks:
            raise BadInput(where, f"ranks 0 to {work.ranks - 1}", f"{ranks.min()} to {ranks.max()}")
        if (np.diff(ranks) < 0).any():
            raise BadInput(where, "operations sorted by rank")
        kinds = operations["kind"]
        if len(kinds) and not 0 <= kinds.min() <= kinds.max() <= max(OperationKind):
            raise BadInput(
                where, f"kinds of operations 0 to {max(OperationKind)}", f"{kinds.min()} to {kinds.max()}"
            )
        if any(file.size_bytes < 0 for file in work.files):
            raise BadInput(where, "files of 0 bytes or more", min(file.size_bytes for file in work.files))
        of_files = files[operations["kind"] != OperationKind.BARRIER]
        if len(of_files) and not 0 <= of_files.min() <= of_files.max() < len(work.files):
            raise BadInput(
                where, f"files 0 to {len(work.files) - 1}", f"{of_files.min()} to {of_files.max()}"
            )
        moved = operations["bytes"].sum(dtype=np.float64)
        if moved >= 2**62:
            raise BadInput(where, f"fewer than {2**62} bytes in all", f"about {moved:.3g}")
        for name in ("delay_s", "earliest_s", "bytes", "offset", "span_bytes"):
            values = operations[name]
            if len(values) and not (np.isfinite(values).all() and values.min() >= 0):
                raise BadInput(where, f"{name} of 0 or more", values.min().item())
        if work.ranks_per_node < 1 or not 0 <= job.start_s < math.inf or job.first_node < 0:
            found = f"{work.ranks_per_node}, {job.start_s} and {job.first_node}"
            raise BadInput(where, "ranks per node above 0, a start and a first node of 0 or more", found)
