"""What one run of a job step created: the parser's result and the predictor's input."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tarazu import ranges
from tarazu.left import NotPlaced
from tarazu.malformed import described
from tarazu.model import ANY_RANK, LONGEST_ID, JobStep
from tarazu.then import System
from tarazu.trace.phases.phase import Phase

OUTCOMES = ("unmanaged", "hit", "late", "miss", "refused", "advised", "skipped", "raced", "partly")
"""Outcome of a create by its number in the spool (`docs/formats.md`, "Spool")."""

FOUND = ("no", "exact", "precise", "precise-any", "loose", "loose-any")
"""How the placement library found the row, by its number in the spool."""

VOLATILE_TOKENS = ("{job}", "{date}", "{pid}", "{host}")

MOST_RANKS = ranges.MOST
"""No step has more; what says so is damaged or made up."""
LARGEST_INDEX = 2**31 - 1
"""Of a task of a job array."""
MOST_NUMBERS = 4096
"""Numeric arguments of one command line."""
LARGEST_BYTES = 2**63 - 1
LATEST_S = 1e9
NOT_KNOWN_S = -1.0

Mode = Literal["full", "light"]
Unsigned = Annotated[int, Meta(ge=0, extra={"arrow": "uint64"})]
Bytes = Annotated[int, Meta(ge=0, le=LARGEST_BYTES)]
Seconds = Annotated[float, Meta(ge=0, le=LATEST_S)]
LayoutKind = Literal["", "plain", "striped", "progressive"]
"""Of one component on one OST, of one on several, of several components; empty: none was chosen."""
OstIndex = Annotated[int, Meta(ge=0, lt=1 << 16)]


def _among(words: Sequence[str]) -> Meta:
    """What msgspec accepts of a file, where Python's types say only str."""
    return Meta(pattern=rf"^({'|'.join(words)})\Z", title=f"one of {', '.join(words)}")


def is_volatile(precise: str) -> bool:
    """True when the exact name behind a precise template is not known before the run."""
    return any(token in precise for token in VOLATILE_TOKENS)


class FileRecord(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One file that a run created, summed up over all its processes."""

    key: Annotated[str, Meta(pattern="^/", title="a path from /")]
    """Path below the mount; bytes that are no UTF-8 are surrogate escapes, as in `os.fsdecode`."""
    precise: str
    loose: str
    rank: Annotated[int, Meta(ge=-1, le=MOST_RANKS)]
    """Creating rank; ANY_RANK when several ranks created or wrote it, or when there are no ranks."""
    creators: tuple[int, ...]
    """Every rank that asked for its creation, sorted; empty for processes without a rank."""
    nth_precise: Unsigned
    nth_loose: Unsigned
    at_s: Annotated[float, Meta(ge=0, le=LATEST_S)]
    """First creation, seconds after the start of the run."""
    size_bytes: Bytes
    """Size at last close, maximum over processes."""
    written_bytes: Bytes = 0
    """Bytes written, summed; 0 unless `counted`."""
    writers: Unsigned = 1
    """Processes that wrote it (`counted`), else that had it open for writing; two at least where its plan knew it as
    shared."""
    contiguous: bool = False
    """Each writer wrote one contiguous segment and none overlap; only ever true when `counted`."""
    counted: bool = False
    """Write counters are valid (recorder mode full)."""
    closed: bool = True
    """False when no process closed it: the size is unknown."""
    until_s: Annotated[float, Meta(ge=NOT_KNOWN_S, le=LATEST_S)] = NOT_KNOWN_S
    """Last close by any process, seconds after the start of the run; −1: not known."""
    existed: bool = False
    """Every create found the file there already."""
    outcome: Annotated[str, _among(OUTCOMES)] = "unmanaged"
    """One of OUTCOMES: that of the process that really created it."""
    found: Annotated[str, _among(FOUND)] = "no"
    """One of FOUND."""
    errno: Unsigned = 0
    """Of a refusal."""
    row_id: Unsigned = 0
    generation: Unsigned = 0
    layout: bytes = b""
    """`lustre.lov` as read back after placing; empty when nothing was placed.

    In a history without what is different in every file (`tarazu.native.without_identity`).
    """

    @property
    def volatile(self) -> bool:
        return is_volatile(self.precise)

    @property
    def creator(self) -> int:
        """The first rank that asked for its creation; ANY_RANK for processes without a rank."""
        return self.creators[0] if self.creators else ANY_RANK

    @property
    def creator_count(self) -> int:
        return len(self.creators)

    @property
    def shared(self) -> bool:
        return self.writers > 1 or len(self.creators) > 1


class NotPlacedFiles(msgspec.Struct, frozen=True, omit_defaults=True):
    """Files of a run that were not placed for one reason."""

    why: NotPlaced
    files: Unsigned
    bytes: Bytes = 0
    places: str = ""
    """Which of `RunRecord.files` they are, folded, from 0; empty for opens that were not recorded, and where they are
    too many to be named."""


class RunRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One run of a job step: what was known before it, and the files that it created."""

    step: JobStep
    start_s: float
    """Unix time."""
    duration_s: float
    mode: Mode
    """`full` when every process recorded its writes."""
    files: tuple[FileRecord, ...]
    """In order of creation."""
    ranks_seen: int = 0
    ranks_expected: int = 0
    processes: int = 0
    unended: int = 0
    """Processes without an end record: killed, or ended by `_exit`."""
    dropped_records: int = 0
    """Records that the recorder had no space for."""
    lost_bytes: int = 0
    """Bytes of spools that were truncated or corrupt."""
    partial: bool = False
    """The source itself says that files are missing (Darshan's partial flag)."""
    passed_over: int = 0
    """Opens that could have made a file while tarazu was stopped; then `partial` too."""
    exit_status: int = 0
    source: str = "recorder"
    phases: tuple[Phase, ...] = ()
    """Of its I/O on the step's file system, in order of their start; none where nobody looked for them."""
    ost_bytes: dict[OstIndex, Bytes] = {}
    """Bytes of its files on each OST, as they lay when it ended; empty: nobody looked."""
    system: System | None = None
    """How the OSTs and servers were while it did I/O, as mdsd knew when it ended; None: it was not asked."""
    not_placed: tuple[NotPlacedFiles, ...] = ()
    """Why files were not placed, the reason of most files first."""
    placed_bytes: Bytes = 0
    """Of the files that were placed."""
    placed_kind: LayoutKind = ""
    """Of the layouts that most of the planned bytes got."""
    expected_s: Seconds = 0.0
    """Of writing what was planned where it was placed, by the estimate without correction; 0: not known."""
    expected_requests_s: Seconds = 0.0
    """Of its files' requests to the MDS, likewise."""
    expected_gain: Annotated[float, Meta(ge=-1, le=LATEST_S)] = 0.0
    """By how much longer Lustre would have taken, as a share of both, corrected; 0: not known."""

    @property
    def complete(self) -> bool:
        """No sign that files are missing or that the run failed."""
        lost = self.dropped_records or self.lost_bytes or self.partial or self.exit_status
        return not lost and self.ranks_seen >= self.ranks_expected

    @property
    def outcomes(self) -> dict[str, int]:
        """Number of files per outcome, in the order of OUTCOMES; outcomes that did not occur are absent."""
        counts = Counter(file.outcome for file in self.files)
        return {o: counts[o] for o in OUTCOMES if counts[o]}


def why_of(run: RunRecord, place: int) -> NotPlaced | None:
    """Why one of its files was not placed; None where it was, or nobody knows."""
    for of in run.not_placed:
        try:
            if any(first <= place <= last for first, last in ranges.spans(of.places)):
                return of.why
        except ValueError:
            continue
    return None


def summed(parts: Iterable[NotPlacedFiles], *, by_word: bool = False) -> list[NotPlacedFiles]:
    """Of several runs: those of one reason, or of one word, together, most files first; without places."""
    groups: dict[NotPlaced, tuple[int, int]] = {}
    for of in parts:
        why = NotPlaced(of.why.word) if by_word else of.why
        files, size = groups.get(why, (0, 0))
        groups[why] = files + of.files, min(size + of.bytes, LARGEST_BYTES)
    together = [NotPlacedFiles(why, files, size) for why, (files, size) in groups.items()]
    return sorted(together, key=lambda of: -of.files)


def said_of(not_placed: Sequence[NotPlacedFiles]) -> str:
    """Why files were not placed, in a line; empty where all were."""
    if len(not_placed) < 2:
        return "".join(str(of.why) for of in not_placed)
    return "; ".join(f"{of.why} ({of.files})" for of in not_placed)


CLOSED, COUNTED, CONTIGUOUS = 1, 2, 4
"""Bits of `PastFile.marks`."""


class PastFile(msgspec.Struct, frozen=True, gc=False):
    """What a forecast needs of a FileRecord; a history may have a million of them."""

    key: str
    """The precise template in all but the newest runs."""
    precise: str
    """In older runs the loose template, where no newer run has the precise one."""
    loose: str
    rank: int
    creator: int
    creator_count: int
    nth_precise: int
    nth_loose: int
    at_s: float
    size_bytes: int
    writers: int
    marks: int
    until_s: float = NOT_KNOWN_S

    @property
    def closed(self) -> bool:
        return bool(self.marks & CLOSED)

    @property
    def counted(self) -> bool:
        return bool(self.marks & COUNTED)

    @property
    def contiguous(self) -> bool:
        return bool(self.marks & CONTIGUOUS)

    @property
    def shared(self) -> bool:
        return self.writers > 1 or self.creator_count > 1


class PastRun(msgspec.Struct, frozen=True):
    """A RunRecord as far as a forecast looks at it."""

    step: JobStep
    start_s: float
    mode: Mode
    files: tuple[PastFile, ...]
    outcomes: dict[str, int]
    ranks_seen: int = 0
    ranks_expected: int = 0
    dropped_records: int = 0
    lost_bytes: int = 0
    partial: bool = False
    exit_status: int = 0
    duration_s: float = 0.0
    phases: tuple[Phase, ...] = ()


KnownFile = FileRecord | PastFile
KnownRun = RunRecord | PastRun
"""All that a forecast looks at is in both."""


def why_absurd(step: JobStep) -> str:
    """Empty for a step that can be true, else what was expected and found: users write these numbers."""
    if not 0 <= step.ranks <= MOST_RANKS or not 0 <= step.nodes <= MOST_RANKS:
        return f"expected 0 to {MOST_RANKS} ranks and nodes, found {step.ranks} and {step.nodes}"
    if len(step.numbers) > MOST_NUMBERS or not all(map(math.isfinite, step.numbers)):
        return f"expected at most {MOST_NUMBERS} finite arguments, found {len(step.numbers)}"
    if step.array_index is not None and not 0 <= step.array_index <= LARGEST_INDEX:
        return f"expected an array index of 0 to {LARGEST_INDEX}, found {step.array_index}"
    if len(step.array_job) > LONGEST_ID:
        return (
            f"expected the id of a job array of at most {LONGEST_ID} characters, found {len(step.array_job)}"
        )
    return ""


def why_impossible(phases: Sequence[Phase]) -> str:
    """Empty for phases that can be true, else what was expected and found: users write these numbers too."""
    for phase in phases:
        times = (phase.start_s, phase.end_s, phase.io_s)
        if not all(0 <= value <= LATEST_S for value in times):
            return f"expected phases with times of 0 to {LATEST_S:g} s, found {times}"
        numbers = (phase.bytes, phase.requests, phase.files, phase.processes_per_file, phase.rank_count)
        if not all(0 <= value <= LARGEST_BYTES for value in numbers):
            return f"expected phases with numbers of 0 to {LARGEST_BYTES}, found {numbers}"
    return ""


described(RunRecord)
