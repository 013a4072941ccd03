"""The nouns of tarazu. Frozen structs, units in the names; every other room uses them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec

from tarazu.malformed import described
from tarazu.ost_state import SICK, OstState, Verdict, judge

ANY_RANK = -1
"""Rank of a process that has none, and of a file that several ranks share."""
LONGEST_ID = 256
"""Of the id of a job array, in characters."""


class Component(msgspec.Struct, frozen=True, omit_defaults=True):
    """One extent of a layout and how it is striped (`lov_comp_md_entry_v1` + `lov_user_md`)."""

    start_bytes: int
    end_bytes: int
    """Exclusive; `EOF` for a last component."""
    stripe_size_bytes: int
    stripe_count: int
    """Objects in this component; 0 only for a component on the MDT (DoM)."""
    pattern: str = "raid0"
    """`raid0`, `mdt` (DoM) or `overstriped`."""
    pool: str = ""
    extension_bytes: int = 0
    """Extension size of a self-extending component (SEL); 0 for none."""

    @property
    def length_bytes(self) -> int:
        return self.end_bytes - self.start_bytes


class Layout(msgspec.Struct, frozen=True, omit_defaults=True, cache_hash=True):
    """A plain layout (one component [0, EOF)) or a composite (progressive) one.

    A hundred thousand files share a few: its hash is computed once, and who makes layouts for files gives equal
    ones as one object, so that it is as fast a key of a dictionary as a number.
    """

    components: tuple[Component, ...]
    composite: bool = False
    """True when it is written as `lov_comp_md_v1`, even with a single component."""

    def __iter__(self) -> Iterator[Component]:
        return iter(self.components)

    def covered(self, size_bytes: int) -> int:
        """How many components a file of `size_bytes` reaches into (at least one)."""
        if len(self.components) == 1:
            return 1
        reached = sum(1 for c in self.components if c.start_bytes < size_bytes)
        return max(1, reached)


class Ost(msgspec.Struct, frozen=True, omit_defaults=True):
    """One object storage target as last reported. A target is keyed by (file system, index)."""

    index: int
    oss: str
    """Name of the OSS that reported it last (failover moves it)."""
    total_bytes: int
    free_bytes: int
    """`kbytesfree`; used = total - free."""
    avail_bytes: int
    """`kbytesavail`: what users can still write."""
    files_free: int = 2**32
    promised_bytes: int = 0
    """Placed but not yet visible in `kbytesavail` (the reservation ledger)."""
    written_bytes: int = 0
    """Of these, in files that are closed."""
    write_bytes_per_s: float | None = None
    """Per second of I/O time, no bandwidth: it compares OSTs; None while nothing reliable was measured."""
    write_latency_s: float | None = None
    relative_speed: float | None = None
    """Speed over that of the OSTs that it can be compared with, or over its own usual one where that is less; 1 for one
    like them; None as above."""
    speed_source: str = ""
    """What the speed was measured by (`tarazu.stats.service`)."""
    own_relative: float | None = None
    """Speed over what is usual for this OST itself, 1 at most; `relative_speed` is no more. None: not known."""
    slow_score: float = 0.0
    """0 for well, 1 for slow: how much of a proof there is; it rises and falls with what is seen."""
    slow_why: str = ""
    """How many times slower than itself and than its peers, in words, where it is slow."""
    peak_bytes_per_s: float | None = None
    """The highest rate at which it was seen to write, over one interval of its server: a bandwidth, as a link's speed
    is; None: it never was."""
    degraded: bool = False
    no_create: bool = False
    readonly: bool = False
    active: bool = True
    stale: bool = False
    """No report for longer than the view trusts."""
    pools: tuple[str, ...] = ()
    health: str = ""
    """Why no object should be made here now (`dead: CONNECTING`), as the MDS says; empty: no problem."""
    state: OstState | None = None
    """mdsd's verdict; None where none has judged."""

    @property
    def used_bytes(self) -> int:
        return self.total_bytes - self.free_bytes

    @property
    def fill(self) -> float:
        """Share of its space that is used, 0-1."""
        return 1 - self.free_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def sick(self) -> bool:
        """Slow enough to be avoided, whatever other problem it has."""
        return self.relative_speed is not None and self.relative_speed < SICK

    @property
    def judged(self) -> OstState:
        """mdsd's verdict, or what is said here where none has judged."""
        return judge(self) if self.state is None else self.state

    @property
    def verdict(self) -> Verdict:
        return self.judged.verdict

    @property
    def usable(self) -> bool:
        """True when Lustre would create an object here and the report is fresh."""
        return self.active and not (self.no_create or self.readonly or self.stale or self.health)


class Oss(msgspec.Struct, frozen=True, omit_defaults=True):
    """One object storage server: its load is max(CPU, memory, LNet), each 0-1."""

    name: str
    cpu_load: float = 0.0
    memory_load: float = 0.0
    lnet_load: float = 0.0
    link_bytes_per_s: float = 0.0
    """Of its network; 0: not known."""

    @property
    def load(self) -> float:
        return max(self.cpu_load, self.memory_load, self.lnet_load)


MOST_CORRECTION = 10.0
_Factor = Annotated[float, msgspec.Meta(ge=1 / MOST_CORRECTION, le=MOST_CORRECTION)]


class Correction(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the estimate's seconds are to be multiplied by, as placed runs took them (`tarazu.evidence.model_error`)."""

    streams: _Factor = 1.0
    """Of writing."""
    requests: _Factor = 1.0
    """To the MDS."""


class SystemView(msgspec.Struct, frozen=True):
    """What the metadata server knows of one file system at one moment."""

    fs_name: str
    taken_s: float
    """Unix time."""
    osts: tuple[Ost, ...]
    """Sorted by index; indices may have gaps."""
    osses: tuple[Oss, ...] = ()
    days_until_full: float | None = None
    """Of the OST that is full first, at the rate of the last days; None where none fills, or that is not known."""
    common_relative: float = 1.0
    """Speed of most OSTs over what is usual for them, where none is to blame: see `ost_state.common_cause`."""
    request_s: float | None = None
    """Seconds of a request to the MDS, as it counts them; None: not known."""
    spills: dict[str, str] = {}
    """Pool → the one into which Lustre puts its new files now; empty: into none. Known where mdsd is on the MDS."""
    correction: Correction = Correction()
    """Of the estimate, for those who ask now."""

    def oss_of(self, name: str) -> Oss:
        """The server of that name; an unloaded one when it never reported host statistics."""
        return next((o for o in self.osses if o.name == name), Oss(name))


class CreateRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that is expected to be created: what the allocator is asked to place. It carries no path."""

    size_bytes: int
    """Forecast size."""
    layout: Layout
    own: Layout | None = None
    """What Lustre would give it without us; None: the same."""
    writers: int = 1
    """Processes that write it, each at a place of its own."""


class FilePlacement(msgspec.Struct, frozen=True):
    """The OSTs of one file, one tuple per component of its layout.

    A component that the forecast reaches has `stripe_count` distinct indices (explicit list); one beyond
    the forecast has one index (start hint) or none; a DoM component has none.
    """

    osts: tuple[tuple[int, ...], ...]


class Left(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a file gets no OSTs and is left to Lustre's own allocator."""

    why: str
    never: bool = False
    """True when no state of this file system can give it what it asks for; else asking again later may."""


class Allocation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The allocator's answer: `files[i]` places `requests[i]`."""

    files: tuple[FilePlacement, ...]
    policy: str
    ost_cost: float = 0.0
    """Planned max/mean of the bytes that this allocation puts on each usable OST (paper, equation 4)."""
    ost_cost_bound: float = 0.0
    """No allocation of these requests can have a lower OST cost."""
    elapsed_s: float = 0.0
    expected_s: float = 0.0
    """Until the last byte is written, by the estimate without correction; 0: not known."""
    expected_requests_s: float = 0.0
    """Of the placed files' requests to the MDS, likewise."""
    expected_gain: float = 0.0
    """By how much longer Lustre's own allocator would take, as a share of ours, corrected; 0: nobody asked."""
    left: dict[int, Left] = {}
    """i → why `files[i]` is empty (`tarazu.allocate.partly`). Costs and bound are those of the other files."""


class JobStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a job step before it runs."""

    fs_name: str
    uid: int
    application: str
    job_id: str
    ranks: int = 1
    nodes: int = 1
    numbers: tuple[float, ...] = ()
    """Numeric arguments of the command line, in order: regressors of the prediction."""
    start_s: float = 0.0
    array_job: str = ""
    """Id that the tasks of a job array share where each has an id of its own beside it (Slurm)."""
    array_index: int | None = None
    """Index of this task of a job array: a regressor; None outside of one."""


class FileName(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """By what an expected file is known when it is created: handed on from the forecast to the placement map."""

    key: str
    """Path below the mount, `/ior/test.0`, the best guess of the exact name."""
    precise: str
    """Its template with the known tokens replaced (`docs/formats.md`, "Names")."""
    loose: str
    """Its template with every run of digits replaced."""
    volatile: bool
    """True when the exact name cannot be known before the run (job id, date, pid or host in it)."""
    rank: int
    """Creating rank, or ANY_RANK for a file that several ranks create."""
    nth_precise: int
    nth_loose: int
    """Which create of that template by that process it is, from 0."""


class Forecast(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One file that the predictor expects in the next run."""

    name: FileName
    size_bytes: int
    at_s: float = 0.0
    """Expected time of creation, seconds after the start of the run."""
    writers: int = 1
    """Processes expected to write it; two at least where any run has seen several open it, or create it."""
    contiguous: bool = False
    """History shows one contiguous segment per rank."""
    method: str = "last"
    """How the size was forecast: `arima`, `regression`, `drift`, `last`."""
    until_s: float = -1.0
    """Expected time of the last close, seconds after the start of the run; −1: not known. In no database."""


described(Layout, JobStep, FileName, Forecast)
