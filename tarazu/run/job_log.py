"""What `jobs.log` and mdsd's audit log say of some days: which steps had no plan, which requests no OSTs, and why.

A line that cannot be read is counted, and named by its number.
"""

from __future__ import annotations

import calendar
import contextlib
import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from statistics import median

import msgspec

from tarazu import trusted
from tarazu.left import OBSERVING
from tarazu.run.problems import before

MOST_BYTES = 256 << 20
"""Of a log, from its end: what is older is not looked at."""
_STEP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d) (\S+) app=(.*) mode=(observe|advise|place|none) (.*)")
_AUDIT = re.compile(r"\btime=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) status=([\w-]+) (.*)")
NO_REQUESTS = {"died", "health", "part"}
"""What mdsd notes beside its answers: steps that fell silent, OSTs that changed, what parts note."""
_FIELD = re.compile(r"(\w+)=((?:[^'\"\s]*?:)?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|\S+)")


class Lines(msgspec.Struct):
    """What the lines of a log say."""

    path: str
    lines: int = 0
    """Of the time that was asked for."""
    damaged: list[int] = []
    """Numbers of lines that cannot be read."""
    problem: str = ""
    why: Counter[str] = Counter()
    """Why files of steps were not placed, or requests not allocated → how many steps, or requests."""


class Steps(Lines):
    """What `jobs.log` says."""

    modes: Counter[str] = Counter()


class Audit(Lines):
    """What mdsd's audit log says."""

    status: Counter[str] = Counter()
    bytes: int = 0
    """Of allocated requests."""
    ost_cost: float | None = None
    """Median over allocated requests, as planned."""
    ost_cost_bound: float | None = None


def steps(path: Path, since_s: float, until_s: float, application: str = "") -> Steps:
    """The steps that ended in [since, until), Unix time; of one application only if it is named."""
    tally = Steps(str(path), damaged=[], modes=Counter(), why=Counter())
    former = Steps("", damaged=[])
    for number, line in chain(numbered(before(path), former), numbered(path, tally)):
        match = _STEP.fullmatch(line)
        at = _seconds(match[1], utc=False) if match else None
        of_step = fields(match[5]) if match else []
        # Of a program that nobody led, nobody knows how it ended.
        if match is None or at is None or not ("exit" in dict(of_step) or match[4] == "none"):
            tally.damaged.append(number)
            continue
        if not since_s <= at < until_s or (application and match[3] != application):
            continue
        tally.lines += 1
        tally.modes[match[4]] += 1
        for reason in _reasons(of_step):
            tally.why[reason] += 1
    return tally


def _reasons(fields: list[tuple[str, str]]) -> Iterator[str]:
    """Of one step."""
    for name, value in fields:
        if name == "why" and not value.startswith(OBSERVING):
            yield value
        elif name in ("stopped", "problem"):
            yield f"{name}: {value}"


def audit(path: Path, since_s: float, until_s: float, uid: int | None = None) -> Audit:
    """What mdsd noted in [since, until), requests that it answered above all; of one user only if he is named."""
    tally = Audit(str(path), damaged=[], status=Counter(), why=Counter())
    costs: list[tuple[float, float]] = []
    for number, line in numbered(path, tally):
        match = _AUDIT.search(line)
        if match is None:
            # The daemon's own log may hold others.
            if line.startswith("time="):
                tally.damaged.append(number)
            continue
        at, named = _seconds(match[1], utc=True), dict(fields(match[3]))
        request = match[2] not in NO_REQUESTS
        try:
            mine = uid is None or int(named["uid"] if request else named.get("uid", -1)) == uid
            size = int(named["bytes"]) if request else 0
            cost = (float(named["cost"]), float(named["bound"])) if match[2] == "allocated" else None
        except (KeyError, ValueError):
            at = None
        if at is None:
            tally.damaged.append(number)
        elif since_s <= at < until_s and mine:
            tally.lines += 1
            tally.status[match[2]] += 1
            if cost:
                costs.append(cost)
                tally.bytes += size
            elif request and "reason" in named:
                tally.why[f"{match[2]}: {named['reason']}"] += 1
    if costs:
        tally.ost_cost, tally.ost_cost_bound = median(c for c, _ in costs), median(b for _, b in costs)
    return tally


def numbered(path: Path, found: Lines) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; a log that is not there or may not be read is said in `found`."""
    try:
        # Somebody else's, when root asks: a pipe would hold us up.
        with open(trusted.open_file(path, own=False), "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - MOST_BYTES))
            if size > MOST_BYTES:
                file.readline()
                found.problem = f"only the last {MOST_BYTES >> 20} MiB were read"
            for number, line in enumerate(file, 1):
                if text := line.decode("utf-8", "replace").rstrip("\n"):
                    yield number, text
    except FileNotFoundError:
        found.problem = "there is none"
    except OSError as error:
        found.problem = str(error.strerror or error).lower()


def fields(text: str) -> list[tuple[str, str]]:
    return [(name, _unquoted(value)) for name, value in _FIELD.findall(text)]


def _unquoted(value: str) -> str:
    """A value in quotes of Python or JSON, behind the name of a file system perhaps."""
    start = min((i for i in (value.find("'"), value.find('"')) if i >= 0), default=-1)
    if start < 0 or len(value) < start + 2:
        return value
    inner = value[start + 1 : -1]
    if value[start] == '"':
        with contextlib.suppress(ValueError):
            import json

            inner = str(json.loads(f'"{inner}"'))
    return value[:start] + inner.replace("\\'", "'")


def _seconds(text: str, *, utc: bool) -> float | None:
    try:
        parts = time.strptime(text.rstrip("Z"), "%Y-%m-%dT%H:%M:%S")
        return float(calendar.timegm(parts)) if utc else time.mktime(parts)
    except (ValueError, OverflowError):
        return None
