"""An output of IOR 3.1 to 4.1, as IO500 keeps it → its phases, and what it says of ranks.

What the fastest and the mean rank had moved at the deadline of a run with `-D SECONDS -O stoneWallingWearOut=1` stands
in the line `stonewalling pairs accessed …`. Times of single ranks are in a file of their own, the table that
`-O saveRankPerformanceDetailsCSV=FILE` asks for (`table`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import chain

import msgspec

from tarazu.errors import BadInput
from tarazu.units import GIB

BEGINS = re.compile(r"^[ \t]*IOR-(\S{1,60}): MPI Coordinated Test of Parallel I/O", re.MULTILINE)
LONGEST, LONGEST_COMMAND = 300, 4000
"""Characters that are kept of a line."""
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_STONEWALL = re.compile(
    r"^stonewalling pairs accessed min: (\d{1,15}) max: (\d{1,15}) -- "
    r"min data: (\d{1,12}\.\d+) GiB mean data: (\d{1,12}\.\d+) GiB time: (\d{1,9}\.\d+)s$"
)
_PAIRS = re.compile(r"^(\d{1,9}): stonewalling pairs accessed: (\d{1,15})$")
_ERROR = re.compile(r"^(?:ior )?ERROR\b.*", re.MULTILINE)
_HOLDING = re.compile(r"(?:^|\s)-[a-zA-Z]*[RW][a-zA-Z]*(?=\s|$)|check(?:Read|Write)=1")
"""Options by which data are compared: IOR then counts errors, and all ranks wait for that before their clocks stop."""
_TABLE = re.compile(r"saveRankPerformanceDetailsCSV=(\S+)")


class Stonewall(msgspec.Struct, frozen=True):
    """At the deadline of a run in which each rank then goes on until it has done what the fastest one had by then."""

    at_s: float
    mean_share: float | None
    """What the mean rank had moved by what the fastest one had, 0-1; None where the line is too coarse."""
    all_done: bool = False
    """All ranks had done their part by then, and waited for one another there: nobody knows when each was done."""


class Phase(msgspec.Struct):
    """One writing or reading of all ranks."""

    name: str
    operation: str
    """`write` or `read`."""
    version: str = ""
    command: str = ""
    tasks: int = 0
    """0: not said."""
    tasks_per_node: int = 0
    shared: bool = False
    collective: bool = False
    deadline: bool = False
    wear_out: bool = False
    transfer_bytes: float = 0.0
    """Of one call; 0: not said."""
    moved_s: float = 0.0
    """From the first rank's first call to the last one's last (`wr/rd(s)`); 0: not said."""
    bytes_per_s: float = 0.0
    stonewall: Stonewall | None = None
    ranks_s: tuple[float, ...] = ()
    """Seconds in which each rank moved its bytes."""
    why_not: str = ""
    """Why there is no result."""

    @property
    def held(self) -> bool:
        """IOR holds ranks together before it stops their clocks, so that these tell nothing of single ranks."""
        return self.collective or bool(_HOLDING.search(self.command))

    @property
    def table(self) -> str:
        """Name of the file in which its table of ranks is, without folders."""
        named = _TABLE.search(self.command)
        return named[1].rpartition("/")[2] if named else ""


def phases(text: str, where: str, name: str) -> list[Phase]:
    """Of one output, in its order. Raises BadInput for what is none of IOR's."""
    if BEGINS.search(text):
        return numbered(list(chain.from_iterable(_of_text(part, name) for part in _parts(text))))
    raise BadInput(where, "an output of IOR (text, or its table of ranks)", "another text")


def _parts(text: str) -> list[str]:
    """One for each run of IOR in a text."""
    starts = [match.start() for match in BEGINS.finditer(text)]
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def _of_text(text: str, name: str) -> list[Phase]:
    options: dict[str, str] = {}
    lines = text.splitlines()
    for line in lines:
        if "bw(MiB/s)" in line:
            break
        mark = re.search("[:=]", line[:80])
        if mark:
            options.setdefault(line[: mark.start()].strip(), line[mark.end() :].strip()[:LONGEST_COMMAND])
    begins = BEGINS.search(text)
    command = options.get("Command line", options.get("Command line used", ""))
    tasks, per_node = _tasks(options)
    general = Phase(
        name,
        "",
        version=begins[1] if begins else "",
        command=command,
        tasks=tasks,
        tasks_per_node=per_node,
        shared=options.get("access") == "single-shared-file",
        collective=options.get("type") == "collective",
        deadline=_whole(options.get("stonewallingTime", "0")) > 0 or " -D" in command,
        wear_out=options.get("stoneWallingWearOut") == "1" or "stoneWallingWearOut=1" in command,
        transfer_bytes=_bytes(options.get("xfersize", "")),
    )
    made = _rows(lines, general)
    if made:
        return made
    error = _ERROR.search(text)
    why = f"IOR stopped: {error[0].strip()[:LONGEST]}" if error else "its output ends before a result"
    reads = re.search(r"(?:^|\s)-[a-zA-Z]*r[a-zA-Z]*(?=\s|$)", command)
    writes = re.search(r"(?:^|\s)-[a-zA-Z]*w[a-zA-Z]*(?=\s|$)", command)
    operation = "read" if reads and not writes else "write"
    return [msgspec.structs.replace(general, operation=operation, why_not=why)]


def _tasks(options: dict[str, str]) -> tuple[int, int]:
    """(tasks, tasks on a node); 0: not said."""
    old = re.match(r"(\d{1,9})(?: \((\d{1,9}) per node\))?", options.get("clients", ""))
    if old:
        return int(old[1]), int(old[2] or 0)
    return _whole(options.get("tasks", "0")), _whole(options.get("clients per node", "0"))


def _rows(lines: list[str], general: Phase) -> list[Phase]:
    """A phase for each row of results; what stands before a row about its ranks is its own."""
    made: list[Phase] = []
    columns: list[str] = []
    stonewall: Stonewall | None = None
    pairs: dict[int, int] = {}
    for line in lines:
        if one := _PAIRS.match(line):
            pairs[int(one[1])] = int(one[2])
            continue
        if wall := _STONEWALL.match(line):
            stonewall, pairs = _stonewall(wall, general, list(pairs.values())), {}
            continue
        if line.startswith(("Summary of all tests", "Operation ", "Max ")):
            columns = []
            continue
        if line.startswith("access") and "bw(MiB/s)" in line:
            columns = line.split()
            continue
        row = dict(zip(columns, line.split(), strict=False))
        if row.get("access") not in ("write", "read"):
            continue
        moved_s, rate = _number(row.get("wr/rd(s)", "")), _number(row.get("bw(MiB/s)", ""))
        if not moved_s or not rate:
            continue
        made.append(
            msgspec.structs.replace(
                general,
                operation=row["access"],
                moved_s=moved_s,
                bytes_per_s=rate * (1 << 20),
                stonewall=stonewall,
            )
        )
        stonewall = None
    return made


def numbered(made: list[Phase]) -> list[Phase]:
    """Named by operation and turn, where an output has several."""
    many, seen = Counter(phase.operation for phase in made), Counter[str]()
    for phase in made if len(made) > 1 else ():
        seen[phase.operation] += 1
        turn = f" {seen[phase.operation]}" if many[phase.operation] > 1 else ""
        phase.name += f": {phase.operation}{turn}"
    return made


def _stonewall(line: re.Match[str], of: Phase, pairs: list[int]) -> Stonewall:
    """GiB are printed with one digit: below 1 they are too coarse."""
    least, most = int(line[1]), int(line[2])
    least_bytes, mean_bytes = float(line[3]) * GIB, float(line[4]) * GIB
    share = None
    if most and len(pairs) == of.tasks > 0:
        share = sum(pairs) / len(pairs) / most
    elif most and mean_bytes >= GIB:
        size = of.transfer_bytes or (least_bytes / least if least else 0.0)
        share = mean_bytes / (size * most) if size else None
    return Stonewall(float(line[5]), min(1.0, share) if share else None, least == most)


def _whole(text: str) -> int:
    """0 for what is none, or too large."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 0


def _number(text: str) -> float:
    """0 for what is none, or not above 0."""
    try:
        number = float(text[:40])
    except ValueError:
        return 0.0
    return number if math.isfinite(number) and number > 0 else 0.0


def _bytes(text: str) -> float:
    """`64 MiB` → bytes; 0 for what is none."""
    amount, _, unit = text.partition(" ")
    return _number(amount) * _UNITS.get(unit, 0)
