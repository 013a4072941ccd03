"""The MDS: creates and opens by its threads, and Lustre's own allocator for every file that no plan placed.

A plan (`tarazu.sim.model.planner`) is made before the files come, as tarazu makes one. Lustre's allocator is asked
when a component gets its objects: the first one when the file is created, a later one when the first operation
reaches it. It goes on from file to file and from job to job, and knows the OSTs' space as of its last look,
at most every `qos_maxage` seconds; mode and penalties follow at every second look.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import simpy

from tarazu.allocate.lsa import MAXAGE_S, Lsa
from tarazu.errors import BadInput, InsufficientResources
from tarazu.layout.objects import component_object_bytes
from tarazu.model import FilePlacement, Layout
from tarazu.sim.model.links import Numbers
from tarazu.sim.model.ost import Osts
from tarazu.sim.model.view import view_of


class PlacedFile:
    """A file and where its objects are."""

    __slots__ = ("_hints", "layout", "osts", "size_bytes", "space")

    def __init__(self, layout: Layout, size_bytes: int) -> None:
        self.layout = layout
        self.size_bytes = size_bytes
        self.osts: list[Numbers | None] = [None] * len(layout.components)
        """OSTs of each component's objects; None: it has none yet."""
        self.space: list[tuple[Numbers, Numbers]] = []
        """(OSTs, bytes) that it has taken."""
        self._hints: dict[int, int] = {}

    def put(self, placement: FilePlacement) -> None:
        """Objects where the plan wants them; one OST for a component of several is a start hint."""
        for number, (component, chosen) in enumerate(zip(self.layout.components, placement.osts)):
            if chosen and len(chosen) == component.stripe_count:
                self.osts[number] = np.array(chosen, np.int64)
            elif chosen:
                self._hints[number] = chosen[0]

    def hint(self, component: int) -> int | None:
        return self._hints.get(component)

    def takes(self, osts: Numbers, sizes: Numbers) -> None:
        self.space.append((osts, sizes))

    def filled(self) -> tuple[Numbers, Numbers]:
        """(OSTs, bytes) of all objects that its size fills."""
        objects = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        for component, chosen in zip(self.layout.components, self.osts):
            if chosen is not None:
                sizes = component_object_bytes(component, self.size_bytes)
                objects.append((chosen, np.array(sizes, np.int64)))
        osts, bytes_there = zip(*objects)
        return np.concatenate(osts), np.concatenate(bytes_there)


class Mds:
    """Metadata server of the simulated file system."""

    def __init__(self, env: simpy.Environment, osts: Osts, servers: Sequence[str], seed: int) -> None:
        spec = osts.spec
        self._env, self._osts = env, osts
        self._create_s = spec.create_s
        self._object_s = spec.costs.object_s if spec.costs else 0.0
        self._threads = simpy.Resource(env, max(1, spec.mds_threads))
        self.lsa = Lsa(view_of(osts, servers, env.now), seed)
        self._looked_s = env.now

    def serve(self, objects: int = 0) -> simpy.events.ProcessGenerator:
        """One create or open: waits for a thread, and for its work. objects: of a file that is created."""
        work_s = self._create_s + objects * self._object_s
        if work_s > 0:
            with self._threads.request() as turn:
                yield turn
                yield self._env.timeout(work_s)

    def create(self, file: PlacedFile, plan: FilePlacement | None) -> bool:
        """Give a new file its first objects: the plan's where every OST of it is active, else Lustre's own choice.

        True where the plan was followed. Raises InsufficientResources (ENOSPC).
        """
        followed = plan is not None and all(self._osts.active[list(osts)].all() for osts in plan.osts if osts)
        if plan is not None and followed:
            file.put(plan)
        if file.layout.components[0].stripe_count:
            self.instantiate(file, 0)
        return followed

    def instantiate(self, file: PlacedFile, component: int) -> Numbers:
        """The OSTs of a component's objects; chosen now where it has none. Raises InsufficientResources."""
        chosen = file.osts[component]
        if chosen is None:
            chosen = file.osts[component] = self._choose(file, component)
        return chosen

    def _choose(self, file: PlacedFile, number: int) -> Numbers:
        self._look()
        striping = file.layout.components[number]
        hint = file.hint(number)
        used = frozenset(int(j) for osts in file.osts if osts is not None for j in osts)
        chosen: tuple[int, ...] = ()
        while len(chosen) < striping.stripe_count:
            wanted = striping.stripe_count - len(chosen)
            if hint is not None and not chosen:
                more = self.lsa.create_from(hint, wanted, striping.pool)
            else:
                more = self.lsa.create(wanted, striping.pool, used)
            if striping.pattern != "overstriped" and len(more) < striping.stripe_count:
                if len(more) == 0:
                    raise InsufficientResources("MDS: expected an OST with space, found none")
                # Lustre makes do with fewer stripes; the layout stays, so that bytes keep their arithmetic.
                more = tuple(more[i % len(more)] for i in range(wanted))
            chosen += more
        return np.array(chosen, np.int64)

    def _look(self) -> None:
        passed = self._env.now - self._looked_s
        if passed >= MAXAGE_S:
            self.lsa.refresh(self._osts.available(), passed, self._osts.active)
            self._looked_s = self._env.now

    def put_existing(self, files: Sequence[PlacedFile]) -> None:
        """Objects of files that an earlier job wrote side by side, by Lustre's own allocator: all first components,
        then the later ones in the order in which the files reached them.
        """
        order = sorted(
            (component.start_bytes, place, number)
            for place, file in enumerate(files)
            for number, component in enumerate(file.layout.components[: file.layout.covered(file.size_bytes)])
            if component.stripe_count and component.pattern != "mdt" and file.osts[number] is None
        )
        for _, place, number in order:
            self.instantiate(files[place], number)


def check_osts(osts: Sequence[Sequence[int]], count: int, layout: Layout, key: str) -> None:
    """Raises BadInput for logged OSTs that the cluster does not have, or that are not those of the layout."""
    for number, chosen in enumerate(osts):
        if any(not 0 <= ost < count for ost in chosen):
            raise BadInput(f"file {key}", f"OSTs 0 to {count - 1} of the cluster", max(chosen))
        stripes = layout.components[number].stripe_count if number < len(layout.components) else 0
        if chosen and len(chosen) != stripes:
            raise BadInput(f"file {key}, component {number}", f"{stripes} OSTs as in its layout", len(chosen))
