"""The screen as lines of text with the meaning of their colours: a function of what is known, what is chosen, the size.

From top to bottom: what it is of, space, traffic, verdicts; strips in which each place stands for some neighbouring
OSTs, so that thousands are seen at once; the table, worst first. What a colour says, a word or a letter says too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tarazu.cli.top.choice import HELP, TopChoice
from tarazu.cli.top.rows import TargetRow, TargetTable, chosen, jobs, uneven
from tarazu.errors import BadInput
from tarazu.names import shown
from tarazu.ost_state import LETTER, WEIGHT
from tarazu.units import counted, human_bytes, human_speed, human_time
from tarazu.wire.overview import Imbalance, Overview, PartTarget, Target, over_mean

BARS, PLAIN_BARS = " ▁▂▃▄▅▆▇█", " .:-=+*%#"
STYLE = {
    "ok": "good",
    "busy": "busy",
    "slow": "warn",
    "nearly-full": "warn",
    "degraded": "warn",
    "sick": "bad",
    "excluded": "dim",
    "full": "bad",
    "refusing": "bad",
    "impossible": "bad",
    "silent": "bad",
    "dead": "bad",
}
LEAST_COLUMNS, LEAST_LINES = 40, 8
STRIPS_FROM_LINES = 16
MOST_JOBS = 3
"""Named in the head by bytes, and as many by operations."""
KEYS = "? help  q quit  v t s u m r w l e g sort  c fold  a bad  f file system  / filter  p pause"


class Span(NamedTuple):
    text: str
    style: str = ""
    """title, head, dim, good, busy, warn, bad; empty: as it is."""


Line = list[Span]


class Screen(NamedTuple):
    lines: list[Line]
    rows: int
    """Of the table, also those that have no room."""
    page: int
    """How many have."""


def screen(
    overview: Overview,
    choice: TopChoice,
    columns: int,
    lines: int | None = None,
    *,
    every_s: float | None = None,
    notice: str = "",
    plain: bool = False,
) -> Screen:
    """No line is wider than `columns`, and there are `lines` at most; None: all there are, without a line of keys.

    `notice`: what is wrong with watching itself. `plain`: ASCII only. `every_s`: named as how often it is looked at.
    """
    columns = max(columns, LEAST_COLUMNS)
    if lines is not None:
        lines = max(lines, LEAST_LINES)
    if choice.help:
        text = [[Span(line)] for line in ("", *HELP.splitlines())]
        foot = [Span("any key: back   q quit", "dim")]
        return Screen([_cut(line, columns) for line in [*text[: (lines or 99) - 1], foot]], 0, 0)
    try:
        targets = chosen(overview, choice)
    except BadInput as error:
        targets, notice = [], str(error)
    table = TargetTable(overview, targets, choice)
    moving = [t.moving_bytes_per_s for t in targets]
    head = _head(overview, targets, moving, choice, columns, every_s)
    head += _others([of for of in overview.others if choice.fs_name in ("", of.fs_name)])
    here = {t.oss for t in targets}
    if busiest := jobs([s for s in overview.servers if s.name in here], MOST_JOBS):
        head.append([Span(f"busiest  {busiest}")])
    head += [[Span(text, "bad")] for text in (notice, *_stops(overview)) if text]
    if targets and (lines is None or lines >= STRIPS_FROM_LINES):
        head += _strips(targets, moving, columns, plain=plain)
    head.append([])
    page = len(table) if lines is None else max(0, lines - len(head) - 2)
    first = max(0, min(choice.first, len(table) - page))
    visible = table.rows(first, first + page)
    body = [*head, *(_table(visible, choice) if len(table) else [[_nothing(overview, choice)]])]
    if lines is not None:
        body += [[]] * (lines - 1 - len(body))
        body = body[: lines - 1]
        body.append(_foot(choice, first, len(visible), len(table)))
    return Screen([_cut(line, columns, plain=plain) for line in body], len(table), page)


def text_of(line: Iterable[Span]) -> str:
    return "".join(span.text for span in line).rstrip()


def fs_names(overview: Overview) -> tuple[str, ...]:
    """In the order of the OSTs."""
    return tuple(dict.fromkeys(t.fs_name for t in overview.targets))


def _head(
    overview: Overview,
    targets: Sequence[Target],
    moving: Sequence[float | None],
    choice: TopChoice,
    columns: int,
    every_s: float | None,
) -> list[Line]:
    names = sorted({t.fs_name for t in targets}) or [choice.fs_name or "no file system"]
    servers = {t.oss for t in targets}
    what = f"{', '.join(names)}: {counted(len(servers), 'OSS')}, {counted(len(targets), 'OST')}"
    filtered = f"  filter: {choice.filter}" if choice.filter else ""
    clock = human_time(overview.taken_s, "%H:%M:%S")
    right = clock + (" paused" if choice.paused else f"  {every_s:g} s" if every_s else "")
    left = f"tarazu top  {what}{filtered}"[: max(0, columns - len(right) - 2)]
    total, free = sum([t.total_bytes for t in targets]), sum([t.free_bytes for t in targets])
    promised = sum([t.promised_bytes for t in targets])
    used = f"{1 - free / total:.1%}" if total else "-"
    heard = [m for m, t in zip(moving, targets, strict=True) if m is not None and not t.stale]
    fill = over_mean([t.fill for t in targets if not t.stale])
    even = uneven(Imbalance("", 1.0 if fill is None else fill, over_mean(heard)))
    written = sum([t.writing_bytes_per_s or 0.0 for t in targets])
    read = sum([t.reading_bytes_per_s or 0.0 for t in targets])
    metadata = "" if overview.metadata_per_s is None else f", MDS {overview.metadata_per_s:.0f} operations/s"
    ages = [s.age_s for s in overview.servers if s.name in servers]
    oldest = f"; oldest report {max(ages):.0f} s" if ages else ""
    verdicts = Counter(t.verdict for t in targets)
    words = [
        Span(f"{word} {verdicts[word]} ", STYLE[word])
        for word in sorted(verdicts, key=WEIGHT.__getitem__, reverse=True)
    ]
    return [
        [Span(left.ljust(columns - len(right)), "title"), Span(right, "title")],
        [
            Span(f"space    {used} of {human_bytes(total)} used, {human_bytes(promised)} promised"),
            Span(f" ({overview.promises} allocations)"),
        ],
        [Span(f"moving   write {_rate(written)}, read {_rate(read)}{metadata}")],
        [Span(f"max/mean {even}{oldest}")],
        [Span("OSTs     "), *(words or [Span("none", "dim")])],
    ]


def _others(others: Sequence[PartTarget]) -> list[Line]:
    """A line for each kind, of each what it does, worst first; one that is well by its number alone."""
    lines: dict[str, Line] = {}
    for of in sorted(others, key=lambda of: (of.kind, -of.verdict.weight, of.fs_name, of.index)):
        word = f" {of.verdict}" if of.verdict.amiss else ""
        did = f" {of.short}" if of.short else ""
        line = lines.setdefault(of.kind, [Span(f"{of.kind}s".ljust(9))])
        line.append(Span(f"{of.index}{word}{did}  ", STYLE[of.verdict] if word else ""))
    return [*lines.values()]


def _stops(overview: Overview) -> list[str]:
    closed = overview.gate_closed
    # The gate names the site's stop as its reason.
    return [
        overview.site_stopped,
        f"mdsd allocates nothing: {closed}" if closed and not overview.site_stopped else "",
        *overview.common_causes,
    ]


def _strips(
    targets: Sequence[Target], moving: Sequence[float | None], columns: int, *, plain: bool
) -> list[Line]:
    """Three rows: the fullest, the most moved, the gravest word of each place's OSTs."""
    bars = PLAIN_BARS if plain else BARS
    places = min(columns - 9, len(targets))
    cells = [targets[len(targets) * n // places : len(targets) * (n + 1) // places] for n in range(places)]
    worst = [max([t.verdict for t in cell], key=WEIGHT.__getitem__) for cell in cells]
    fill = [max([t.fill for t in cell]) for cell in cells]
    moved = [
        max([m or 0.0 for m in moving[len(targets) * n // places : len(targets) * (n + 1) // places]])
        for n in range(places)
    ]
    most = max(moved) or 1.0
    each = -(-len(targets) // places)
    stands = f"the worst of {counted(each, 'OST')}" if each > 1 else "an OST"
    scale = f"moving: {_rate(most if max(moved) else 0.0)} at most"
    note = f"         in the order of their indices, each place {stands}; {scale}"
    return [
        [Span("used     "), *_strip([_bar(bars, of) for of in fill], worst)],
        [Span("moving   "), *_strip([_bar(bars, of / most) for of in moved], worst)],
        [Span("verdict  "), *_strip([LETTER[word] for word in worst], worst)],
        [Span(note, "dim")],
    ]


def _bar(bars: str, share: float) -> str:
    """Full only at the top, empty only at nothing."""
    return bars[0] if share <= 0 else bars[min(len(bars) - 1, 1 + int(share * (len(bars) - 1)))]


def _strip(letters: Sequence[str], words: Sequence[str]) -> Line:
    """Neighbours of one style as one span."""
    spans: Line = []
    for letter, word in zip(letters, words, strict=True):
        style = STYLE[word]
        if spans and spans[-1].style == style:
            spans[-1] = Span(spans[-1].text + letter, style)
        else:
            spans.append(Span(letter, style))
    return spans


_COLUMNS: tuple[tuple[str, str, int], ...] = (
    ("target", "", 0),
    ("oss", "OSS", 0),
    ("verdict", "verdict", -11),
    ("used", "%used", 5),
    ("promised", "prom.", 5),
    ("write", "wMB/s", 6),
    ("read", "rMB/s", 6),
    ("latency", "ms/IO", 5),
    ("speed", "speed", 5),
    ("age", "age", 4),
)
"""(by what it sorts, its heading, its width; 0: as wide as it takes, negative: flush left)."""
_NAMES = {"ost": "OST", "oss": "OSS", "fs": "file system", "pool": "pool"}


def _nothing(overview: Overview, choice: TopChoice) -> Span:
    """Instead of a table without a line."""
    if choice.filter:
        return Span("no line has what the filter asks for", "dim")
    if not overview.targets:
        return Span("no OSS has reported an OST", "dim")
    others = any(of.verdict.amiss for of in overview.others if choice.fs_name in ("", of.fs_name))
    return Span("no problems of OSTs", "dim") if others else Span("no problems", "good")


def _table(visible: Sequence[TargetRow], choice: TopChoice) -> list[Line]:
    first, second = _NAMES[choice.fold], "OSS" if choice.fold == "ost" else "of"
    names = [shown(row.name) for row in visible]
    where = [shown(row.where) for row in visible]
    wide = min(32, max(map(len, (first, *names)))), min(24, max(map(len, (second, *where))))
    head: Line = []
    for sort, title, width in _COLUMNS:
        words = {"target": first, "oss": second}.get(sort, title)
        cell = words.rjust(width) if width > 0 else words.ljust(-width or wide[sort == "oss"])
        head += [Span(cell, "head sorted" if sort == choice.sort else "head"), Span(" ", "head")]
    body = [
        _line(row, _fit(name, wide[0]), _fit(oss, wide[1]))
        for row, name, oss in zip(visible, names, where, strict=True)
    ]
    return [head, *body]


def _line(row: TargetRow, name: str, where: str) -> Line:
    numbers = (
        f"{100 * row.used:.1f}",
        _size(row.promised_bytes),
        _number(row.write_bytes_per_s, 1e-6),
        _number(row.read_bytes_per_s, 1e-6),
        _number(row.latency_s, 1e3),
        human_speed(row.speed),
        _number(row.age_s, 1),
    )
    widths = (width for _, _, width in _COLUMNS if width > 0)
    cells = " ".join(number.rjust(width) for number, width in zip(numbers, widths, strict=True))
    return [
        Span(f"{name} {where} "),
        Span(row.verdict.ljust(11), STYLE[row.verdict]),
        Span(f" {cells}  {row.note}"),
    ]


def _foot(choice: TopChoice, first: int, visible: int, found: int) -> Line:
    if choice.typing is not None:
        return [Span(f"filter: {choice.typing}_", "title"), Span("  Enter: take it   Esc: as before", "dim")]
    here = f"{first + 1}-{first + visible} of {found}" if visible else f"0 of {found}"
    only = "  only problems" if choice.amiss else ""
    return [Span(f"{here}{only}  ", "head"), Span(KEYS, "dim")]


def _number(value: float | None, factor: float) -> str:
    """Three digits at least, no more than it takes."""
    if value is None:
        return "-"
    scaled = value * factor
    return f"{scaled:.0f}" if scaled >= 100 or scaled == 0 else f"{scaled:.1f}"


def _size(size_bytes: float) -> str:
    """In five places: `969G`, `1.2T`."""
    if not size_bytes:
        return "0"
    number, unit = human_bytes(size_bytes).split()
    value = float(number)
    return f"{value:.0f}{unit[0]}" if value >= 100 else f"{number}{unit[0]}"


def _rate(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.1f} GB/s" if bytes_per_s >= 1e10 else f"{bytes_per_s / 1e6:.0f} MB/s"


def _fit(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "~"


def _cut(line: Line, columns: int, *, plain: bool = False) -> Line:
    """No control characters, no more than fits."""
    spans: Line = []
    room = columns
    for text, style in line:
        part = shown(text)[:room]
        if plain:
            part = part.replace("·", ".").encode("ascii", "replace").decode()
        room -= len(part)
        if part:
            spans.append(Span(part, style))
    return spans
