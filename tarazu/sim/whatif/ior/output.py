"""An output of IOR 3.1 to 4.1 → its phases: text, JSON or CSV (`-O summaryFormat=`), and what it says of ranks.

Times of single ranks stand in the lines of `-vvv`; what the fastest and the mean rank had moved at the deadline of a
run with `-D SECONDS -O stoneWallingWearOut=1` in the line `stonewalling pairs accessed …`. IO500 runs IOR so. The table
that `-O saveRankPerformanceDetailsCSV=FILE` asks for is a file of its own (`table`).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec

from tarazu.errors import BadInput
from tarazu.units import GIB

BEGINS = re.compile(r"^[ \t]*IOR-(\S{1,60}): MPI Coordinated Test of Parallel I/O", re.MULTILINE)
_TAG = r"^[ \t]*(?:\d{1,8}:|\[[^\]\s]{1,100}\](?:<std(?:out|err)>:?)?)[ \t]?"
"""What launchers put before each line: `srun -l`, Open MPI's `--tag-output`, MPICH's `-prepend-rank`."""
_TAGGED = re.compile(_TAG + r"IOR-\S{1,60}: MPI Coordinated", re.MULTILINE)
_TAGS = re.compile(_TAG, re.MULTILINE)
MDTEST = re.compile(r"^[ \t]*mdtest-\S{1,60} was launched with|^-- started at ", re.MULTILINE)
CSV = "access,bw(MiB/s),"
MOST_RANKS = 1 << 24
LONGEST, LONGEST_COMMAND = 300, 4000
"""Characters that are kept of a line."""
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_TASK = re.compile(
    r"^Test \d+: Iter=(\d{1,9}), (?:Task|Rank)=(\d{1,9}), Time=(\d{1,15}(?:\.\d*)?), (write|read) (start|stop)$"
)
_STONEWALL = re.compile(
    r"^stonewalling pairs accessed min: (\d{1,15}) max: (\d{1,15}) -- "
    r"min data: (\d{1,12}\.\d+) GiB mean data: (\d{1,12}\.\d+) GiB time: (\d{1,9}\.\d+)s$"
)
_PAIRS = re.compile(r"^(\d{1,9}): stonewalling pairs accessed: (\d{1,15})$")
_NOISE = re.compile(
    r"^(?:stonewalling pairs|\d+: stonewalling|(?:ior )?WARNING|Pairs deadline).*$", re.MULTILINE
)
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
    api: str = ""
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
    if re.search(r'^\{\s*"Version"', text, re.MULTILINE):
        return _of_json(text, where, name)
    if text.lstrip().startswith(CSV):
        return numbered(_rows(text.splitlines(), Phase(name, "")))
    found = "an output of mdtest" if MDTEST.search(text) else "another text"
    raise BadInput(where, "an output of IOR (text, JSON, CSV, or its table of ranks)", found)


def untagged(text: str) -> str:
    """Without the rank that a launcher has put before each line."""
    return text if BEGINS.search(text) or not _TAGGED.search(text) else _TAGS.sub("", text)


def documents(text: str, where: str) -> Iterator[Any]:
    """JSON objects at the beginning of a line; what launchers say before and between them, and IOR within them about a
    deadline, is left alone. Raises BadInput."""
    text = _NOISE.sub("", text)
    decoder, at = json.JSONDecoder(), 0
    while match := re.compile(r"^\{", re.MULTILINE).search(text, at):
        try:
            document, at = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", match.start())) + 1
            raise BadInput(f"{where}:{line}", "JSON", str(error)) from None
        yield document


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
        api=options.get("api", "").partition(" ")[0],
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
    clocks: dict[tuple[str, int], dict[int, list[float]]] = {}
    for line in lines:
        if task := _TASK.match(line):
            if int(task[2]) < MOST_RANKS:
                clocks.setdefault((task[4], int(task[1])), {}).setdefault(int(task[2]), []).append(
                    float(task[3])
                )
            continue
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
            columns = line.replace(",", " ").split()
            continue
        row = dict(zip(columns, line.replace(",", " ").split(), strict=False))
        if row.get("access") not in ("write", "read"):
            continue
        moved_s, rate = _number(row.get("wr/rd(s)", "")), _number(row.get("bw(MiB/s)", ""))
        if not moved_s or not rate:
            continue
        made.append(
            msgspec.structs.replace(
                general,
                operation=row["access"],
                tasks=general.tasks or _whole(row.get("numTasks", "0")),
                moved_s=moved_s,
                bytes_per_s=rate * (1 << 20),
                stonewall=stonewall,
            )
        )
        stonewall = None
    for operation in ("write", "read"):
        times = [_ranks(of) for (kind, _), of in sorted(clocks.items()) if kind == operation]
        for phase, ranks_s in zip((p for p in made if p.operation == operation), times, strict=False):
            phase.ranks_s = ranks_s if not phase.tasks or len(ranks_s) == phase.tasks else ()
    return made


def numbered(made: list[Phase]) -> list[Phase]:
    """Named by operation and turn, where an output has several."""
    many, seen = Counter(phase.operation for phase in made), Counter[str]()
    for phase in made if len(made) > 1 else ():
        seen[phase.operation] += 1
        turn = f" {seen[phase.operation]}" if many[phase.operation] > 1 else ""
        phase.name += f": {phase.operation}{turn}"
    return made


def _ranks(clocks: dict[int, list[float]]) -> tuple[float, ...]:
    """Seconds by rank, where each has a start and a stop."""
    if sorted(clocks) != list(range(len(clocks))) or any(len(of) != 2 for of in clocks.values()):
        return ()
    return tuple(max(0.0, clocks[rank][1] - clocks[rank][0]) for rank in range(len(clocks)))


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


class _JsonTest(msgspec.Struct):
    options: dict[str, Any] = msgspec.field(name="Options")
    parameters: dict[str, Any] = msgspec.field(name="Parameters")
    results: list[Any] = msgspec.field(name="Results")


class _JsonOutput(msgspec.Struct):
    version: str = msgspec.field(name="Version")
    command: str = msgspec.field(name="Command line")
    tests: list[_JsonTest]


def _of_json(text: str, where: str, name: str) -> list[Phase]:
    made: list[Phase] = []
    walls = [wall for line in text.splitlines() if (wall := _STONEWALL.match(line))]
    for document in documents(text, where):
        try:
            output = msgspec.convert(document, _JsonOutput)
        except msgspec.ValidationError as error:
            raise BadInput(where, "IOR's JSON output (-O summaryFormat=JSON)", str(error)) from None
        for test in output.tests:
            made += _of_test(output, test, name)
    written = [phase for phase in made if phase.operation == "write"]
    if len(walls) == len(written):
        for phase, wall in zip(written, walls, strict=True):
            phase.stonewall = _stonewall(wall, phase, [])
    return numbered(made)


def _of_test(output: _JsonOutput, test: _JsonTest, name: str) -> Iterator[Phase]:
    options, parameters = test.options, test.parameters
    checks = " -R" if parameters.get("checkRead") == 1 or parameters.get("checkWrite") == 1 else ""
    # 3.3 keeps a list for each repetition, 4.0 one for all.
    for row in chain.from_iterable(r if isinstance(r, list) else [r] for r in test.results):
        if not isinstance(row, dict) or row.get("access") not in ("write", "read"):
            continue
        moved_s, rate = _number(row.get("wrRdTime")), _number(row.get("bwMiB"))
        if not moved_s or not rate:
            continue
        yield Phase(
            name,
            row["access"],
            version=output.version[:60],
            command=output.command[:LONGEST_COMMAND] + checks,
            api=str(options.get("api", ""))[:60],
            tasks=_whole(options.get("tasks")),
            tasks_per_node=_whole(options.get("clients per node")),
            shared=options.get("access") == "single-shared-file",
            collective=options.get("type") == "collective",
            deadline=_number(parameters.get("deadlineForStonewall")) > 0,
            wear_out=parameters.get("stoneWallingWearOut") == 1,
            transfer_bytes=_number(parameters.get("transferSize")),
            moved_s=moved_s,
            bytes_per_s=rate * (1 << 20),
        )


def _whole(value: object) -> int:
    """0 for what is none, or too large."""
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 0


def _number(value: object) -> float:
    """0 for what is none, or not above 0."""
    if isinstance(value, bool):
        return 0.0
    try:
        number = float(str(value)[:40])
    except ValueError:
        return 0.0
    return number if math.isfinite(number) and number > 0 else 0.0


def _bytes(text: str) -> float:
    """`64 MiB` → bytes; 0 for what is none."""
    amount, _, unit = text.partition(" ")
    return _number(amount) * _UNITS.get(unit, 0)
