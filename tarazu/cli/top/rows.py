"""The lines of the table: OSTs, or what they are folded into; filtered and in order."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tarazu.cli.top.choice import Fold, Sort, TopChoice
from tarazu.errors import BadInput
from tarazu.ost_state import WEIGHT, Verdict
from tarazu.units import counted, human_rate
from tarazu.wire.overview import Imbalance, Overview, Server, Target, busiest, imbalance

MANY_ALIKE = 4


class TargetRow(NamedTuple):
    """An OST, or several as one: sums, and of what cannot be summed the worst."""

    name: str
    where: str
    """Its OSS; of several, how many OSTs on how many OSSs."""
    used: float
    """Share of the space, 0-1."""
    promised_bytes: int
    read_bytes_per_s: float | None
    write_bytes_per_s: float | None
    latency_s: float | None
    speed: float | None
    """Over its peers'; of several the slowest."""
    age_s: float | None
    verdict: Verdict
    note: str
    """Why; of several, how many are what, and how uneven they are."""


def chosen(overview: Overview, choice: TopChoice) -> list[Target]:
    """The OSTs that the file system and the filter leave. Raises BadInput for a filter that is none."""
    targets = [t for t in overview.targets if choice.fs_name in ("", t.fs_name)]
    if not choice.filter:
        return targets
    wanted = _filter(choice.filter, {server.name: server.age_s for server in overview.servers})
    return list(filter(wanted, targets))


class TargetTable:
    """The lines in order; a line's text is made when it is asked for, since few of thousands are on the screen."""

    def __init__(self, overview: Overview, targets: Iterable[Target], choice: TopChoice) -> None:
        self._ages = {server.name: server.age_s for server in overview.servers}
        self._lines: list[Target | TargetRow]
        if choice.fold == "ost":
            alone, together = _alike(targets) if choice.sort == "verdict" else (targets, {})
            self._lines = [*alone, *(_of_alike(of, self._ages) for of in together.values())]
        else:
            groups = _groups(targets, choice.fold)
            folded = [_of_group(name, of, self._ages) for name, of in groups.items()]
            if choice.fold == "oss":
                servers = {server.name: server for server in overview.servers}
                folded = [_with_server(row, servers.get(row.name)) for row in folded]
            self._lines = [*folded]
        if choice.amiss:
            self._lines = [line for line in self._lines if line.verdict.amiss]
        of_target, of_row, descending = _ORDER[choice.sort]
        ages = self._ages

        def key(line: Target | TargetRow) -> tuple[object, ...]:
            return of_row(line) if isinstance(line, TargetRow) else of_target(line, ages)

        self._lines.sort(key=key, reverse=descending != choice.backwards)

    def __len__(self) -> int:
        return len(self._lines)

    def rows(self, first: int, end: int) -> list[TargetRow]:
        return [
            line if isinstance(line, TargetRow) else _of_one(line, self._ages.get(line.oss))
            for line in self._lines[first:end]
        ]


def _alike(targets: Iterable[Target]) -> tuple[list[Target], dict[object, list[Target]]]:
    """(OSTs for themselves, others together): of many of one OSS that have the same amiss one line tells enough."""
    alone: list[Target] = []
    amiss: dict[object, list[Target]] = {}
    for t in targets:
        if t.verdict.amiss:
            amiss.setdefault((t.fs_name, t.oss, t.verdict, t.why), []).append(t)
        else:
            alone.append(t)
    for of in amiss.values():
        if len(of) < MANY_ALIKE:
            alone += of
    return alone, {key: of for key, of in amiss.items() if len(of) >= MANY_ALIKE}


def _of_alike(of: Sequence[Target], ages: Mapping[str, float]) -> TargetRow:
    row, first = _of_group(f"{of[0].fs_name}: {counted(len(of), 'OST')}", of, ages), _of_one(of[0], None)
    return row._replace(where=of[0].oss, verdict=first.verdict, note=first.note)


def _with_server(row: TargetRow, server: Server | None) -> TargetRow:
    """What the server itself reports goes before what is said of its OSTs."""
    if server is None:
        return row
    words = [
        f"CPU {server.cpu_load:.0%} mem {server.memory_load:.0%} queue {server.queue_wait_s * 1e3:.1f} ms"
    ]
    if server.unreadable:
        words.append(f"{len(server.unreadable)} unreadable")
    if server.late:
        words.append(counted(server.late, "late report"))
    if named := jobs([server], 2):
        words.append(named)
    return row._replace(note="  ".join([*words, row.note]))


def jobs(servers: Iterable[Server], most: int) -> str:
    """The busiest jobs there, in words: by bytes, and by operations; empty where none is known."""
    by_bytes, by_operations = busiest(servers, most)
    parts = [", ".join(f"{j.job_id} {human_rate(j.bytes_per_s)}" for j in by_bytes)]
    parts.append(", ".join(f"{j.job_id} {j.operations_per_s:.0f}/s" for j in by_operations))
    return "  ".join(f"{what}: {of}" for what, of in zip(("jobs", "operations"), parts, strict=True) if of)


def _of_one(t: Target, age_s: float | None) -> TargetRow:
    return TargetRow(
        t.name,
        t.oss,
        t.fill,
        t.promised_bytes,
        t.reading_bytes_per_s,
        t.writing_bytes_per_s,
        t.latency_s,
        t.relative_speed,
        age_s,
        t.verdict,
        t.why,
    )


def _of_group(name: str, of: Sequence[Target], ages: Mapping[str, float]) -> TargetRow:
    total = sum(t.total_bytes for t in of)
    servers = {t.oss for t in of}
    words = Counter(t.verdict for t in of)
    counts = [f"{n} {word}" for word, n in sorted(words.items(), key=lambda i: -WEIGHT[i[0]]) if word != "ok"]
    return TargetRow(
        name,
        counted(len(of), "OST") + (f" {counted(len(servers), 'OSS')}" if len(servers) > 1 else ""),
        sum(t.total_bytes - t.free_bytes for t in of) / total if total else 0.0,
        sum(t.promised_bytes for t in of),
        _sum(t.reading_bytes_per_s for t in of),
        _sum(t.writing_bytes_per_s for t in of),
        max((t.latency_s for t in of if t.latency_s is not None), default=None),
        min((t.relative_speed for t in of if t.relative_speed is not None), default=None),
        max((ages[name] for name in servers if name in ages), default=None),
        max(words, key=WEIGHT.__getitem__),
        "  ".join([f"max/mean: {uneven(imbalance(name, of))}", " ".join(counts)]).rstrip(),
    )


def uneven(of: Imbalance) -> str:
    """Largest over mean, in words."""
    return f"used {of.fill:.2f}" + ("" if of.load is None else f", moving {of.load:.2f}")


def _groups(targets: Iterable[Target], fold: Fold) -> dict[str, list[Target]]:
    """An OST lies in each of its pools."""
    groups: dict[str, list[Target]] = {}
    for target in targets:
        if fold == "pool":
            names = [f"{target.fs_name}.{pool}" for pool in target.pools] or [f"{target.fs_name} (no pool)"]
        else:
            names = [target.oss if fold == "oss" else target.fs_name]
        for name in names:
            groups.setdefault(name, []).append(target)
    return groups


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _known(value: float | None) -> tuple[bool, float]:
    """What is not known comes last where the largest are first."""
    return value is not None, value or 0.0


def _slowest(speed: float | None) -> tuple[bool, float]:
    return speed is None, speed or 0.0


_Key = tuple[object, ...]
_ORDER: dict[
    Sort, tuple[Callable[[Target, Mapping[str, float]], _Key], Callable[[TargetRow], _Key], bool]
] = {
    "verdict": (
        lambda t, _: (-t.verdict.weight, -(t.moving_bytes_per_s or 0.0), t.name),
        lambda r: (-r.verdict.weight, -(r.read_bytes_per_s or 0.0) - (r.write_bytes_per_s or 0.0), r.name),
        False,
    ),
    "target": (lambda t, _: (t.name,), lambda r: (r.name,), False),
    "oss": (lambda t, _: (t.oss, t.name), lambda r: (r.where, r.name), False),
    "used": (lambda t, _: (t.fill,), lambda r: (r.used,), True),
    "promised": (lambda t, _: (t.promised_bytes,), lambda r: (r.promised_bytes,), True),
    "read": (lambda t, _: _known(t.reading_bytes_per_s), lambda r: _known(r.read_bytes_per_s), True),
    "write": (lambda t, _: _known(t.writing_bytes_per_s), lambda r: _known(r.write_bytes_per_s), True),
    "latency": (lambda t, _: _known(t.latency_s), lambda r: _known(r.latency_s), True),
    "speed": (lambda t, _: _slowest(t.relative_speed), lambda r: _slowest(r.speed), False),
    "age": (lambda t, ages: _known(ages.get(t.oss)), lambda r: _known(r.age_s), True),
}
"""What is sorted by → its value of an OST, of a folded line, and whether the largest are first."""

_NUMBERS: dict[str, Callable[[Target, Mapping[str, float]], float | None]] = {
    "used": lambda t, _: 100 * t.fill,
    "promised": lambda t, _: t.promised_bytes,
    "read": lambda t, _: _scaled(t.reading_bytes_per_s, 1e-6),
    "write": lambda t, _: _scaled(t.writing_bytes_per_s, 1e-6),
    "latency": lambda t, _: _scaled(t.latency_s, 1e3),
    "speed": lambda t, _: t.relative_speed,
    "age": lambda t, ages: ages.get(t.oss),
}
"""What a filter may compare, in the columns' units: %, bytes, MB/s, ms, 1 for the peers' speed, s."""
_COMPARE = {"<": operator.lt, ">": operator.gt}
_COMPARED = re.compile(r"([a-z]+)([<>])(.*)")


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _filter(text: str, ages: Mapping[str, float]) -> Callable[[Target], bool]:
    tests = [_word(word, ages) for word in text.split()]
    return lambda target: all(test(target) for test in tests)


def _word(word: str, ages: Mapping[str, float]) -> Callable[[Target], bool]:
    if word.startswith("pool="):
        return lambda t: word[len("pool=") :] in t.pools
    if match := _COMPARED.fullmatch(word):
        name, sign, number = match.groups()
        of, compare = _NUMBERS.get(name), _COMPARE[sign]
        try:
            limit = float(number)
        except ValueError:
            of = None
        if of is None:
            raise BadInput("filter", f"{' '.join(_NUMBERS)}, < or >, a number", word)
        value = of
        return lambda t: (found := value(t, ages)) is not None and compare(found, limit)
    part = word.lower()
    return lambda t: part in f"{t.name} {t.oss} {t.verdict} {t.why}".lower()
