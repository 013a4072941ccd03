"""All OSTs as a heat map, a row a server: by fill, by load, by speed. Every colour stands in words too.

What colour tells, the text of each row says in short, the letter in a cell for a problem, and a page of its own
(`all_of`) for each OST. Which of the three is coloured a radio button says, without a script.
"""

from __future__ import annotations

from collections.abc import Sequence

from tarazu.ost_state import LETTER, Verdict
from tarazu.parts.page import dense, links
from tarazu.parts.page.markup import Markup, element, join, table
from tarazu.parts.page.seen import FileSystemOverview, amiss
from tarazu.units import human_bytes, human_rate
from tarazu.wire.overview import Target

STEPS = 10
FIGURES_UP_TO = 400
"""So many OSTs show their figure in the cell; of more only a letter is shown, for those that are amiss."""
IN_A_ROW = 10
"""Servers of so many OSTs at most are drawn in blocks then (`dense`)."""
MEASURES = (
    ("fill", "f", "space used, 0 to 100 %"),
    ("load", "l", "what it moves now, of what the busiest moves"),
    ("speed", "p", "speed, of that of its peers: dark is as fast as they are"),
)


def step(share: float | None) -> int | None:
    """0 to 9; None for what is not known."""
    return None if share is None else min(STEPS - 1, int(min(1.0, max(0.0, share)) * STEPS))


def heat_map(of: FileSystemOverview, at: int) -> Markup:
    """`at`: which file system of the page this is."""
    busiest = max((t.moving_bytes_per_s or 0.0 for t in of.targets), default=0.0)
    many = len(of.targets) > FIGURES_UP_TO
    servers = of.servers
    if many and max(len(targets) for _, targets in servers) <= IN_A_ROW:
        drawing = dense.Drawing(lambda t: _steps(t, busiest), _said, _title)
        drawn = dense.blocks(of.name, servers, drawing)
        shown = element("div", *drawn, class_="map dense")
    else:
        rows = [_row(of.name, name, targets, busiest, small=many) for name, targets in servers]
        shown = element("ul", *rows, class_="map small" if many else "map")
    choices = [
        join(
            element(
                "input",
                type="radio",
                name=f"measure{at}",
                id=f"{name}{at}",
                class_=f"m-{name}",
                checked=number == 0,
            ),
            element("label", name, for_=f"{name}{at}", title=text),
        )
        for number, (name, _, text) in enumerate(MEASURES)
    ]
    return element(
        "section",
        element("h2", f"{of.name}: OSTs by server", id=f"map{at}"),
        element("a", "Skip the map", href=f"#after{at}", class_="skip"),
        element(
            "div",
            element("span", "coloured by", class_="by", id=f"by{at}"),
            *choices,
            shown,
            *(_legend(name, letter, text) for name, letter, text in MEASURES),
            class_="heat",
            role="group",
            aria_labelledby=f"by{at}",
        ),
        _letters(of.targets),
        element(
            "p",
            element("a", f"All {len(of.targets):,} OSTs as a table", href="osts", id=f"after{at}"),
            class_="note",
        ),
        aria_labelledby=f"map{at}",
    )


def _row(fs_name: str, name: str, targets: Sequence[Target], busiest: float, *, small: bool) -> Markup:
    """What the cells show is said in words beside them. A click on one leads to its OST (page.js)."""
    cells = element(
        "span",
        *(_cell(t, busiest, small=small) for t in targets),
        class_="cells",
        aria_hidden="true",
        data_at=f"osts/{links.part(fs_name)}",
        data_osts=" ".join(str(t.index) for t in targets),
    )
    return element(
        "li",
        element("a", name, class_="oss", href=f"servers/{links.part(name)}"),
        cells,
        element("span", _said(targets), class_="said"),
        class_="row",
    )


def _said(targets: Sequence[Target]) -> str:
    """A server in a few words."""
    fills = [t.fill for t in targets]
    words = [f"{min(fills) * 100:.0f}–{max(fills) * 100:.0f} %"]
    bad = amiss(targets)
    named = [f"OST {t.index} {t.verdict}" for t in bad[:3]] + ["…"] * (len(bad) > 3)
    moving = [m for t in targets if (m := t.moving_bytes_per_s) is not None]
    return ", ".join(words + ([human_rate(sum(moving))] if moving else []) + named)


def _steps(t: Target, busiest: float) -> tuple[tuple[str, int | None], ...]:
    """Of each measure the step of its colour."""
    moving = t.moving_bytes_per_s
    load = moving / busiest if moving is not None and busiest else None
    return (("fill", step(t.fill)), ("load", step(load)), ("speed", step(t.relative_speed)))


def _cell(t: Target, busiest: float, *, small: bool) -> Markup:
    letters = {name: letter for name, letter, _ in MEASURES}
    steps = _steps(t, busiest)
    classes = " ".join(f"{letters[name]}{'n' if digit is None else digit}" for name, digit in steps)
    bad = t.verdict.amiss
    if bad:
        classes += f" x v-{t.verdict}"
    # Of thousands only those that are amiss say more: the table has all.
    title = None if small and not bad else _title(t)
    inside = LETTER[t.verdict] if bad else "" if small else f"{t.fill * 100:.0f}"
    return element("i", inside, class_=classes, title=title)


def _title(t: Target) -> str:
    words = [f"{t.name} on {t.oss}: {t.verdict}, {t.fill:.0%} full"]
    if t.moving_bytes_per_s is not None:
        words.append(f"moves {human_rate(t.moving_bytes_per_s)}")
    if t.relative_speed is not None:
        words.append(f"{t.relative_speed:.0%} of the usual speed")
    if t.why:
        words.append(t.why)
    return "; ".join(words)


def _legend(name: str, letter: str, text: str) -> Markup:
    boxes = (element("i", f"{number * 10}", class_=f"{letter}{number}") for number in range(STEPS))
    return element(
        "p",
        *boxes,
        element("i", "?", class_=f"{letter}n"),
        f" {text}, in steps from the figure in the box; ?: not known.",
        class_=f"legend k-{name}",
    )


def _letters(targets: Sequence[Target]) -> Markup:
    there = {t.verdict for t in amiss(targets)}
    if not there:
        return join()
    words = [join(element("b", LETTER[v], class_=f"word v-{v}"), f" {v} ") for v in Verdict if v in there]
    return element("p", "In a cell: ", *words, class_="note")


def all_of(of: FileSystemOverview, top: str = "") -> Markup:
    """Every OST with its figures: what the heat map shows, as text."""
    return table_of(of.targets, f"OSTs of {of.name}", top)


def table_of(targets: Sequence[Target], caption: str, top: str = "") -> Markup:
    rows: list[tuple[object, ...]] = [
        (
            links.ost(t, top, t.index),
            links.server(t.oss, top),
            t.verdict,
            f"{t.fill:.1%}",
            human_bytes(t.avail_bytes),
            human_rate(t.writing_bytes_per_s),
            human_rate(t.reading_bytes_per_s),
            "-" if t.latency_s is None else f"{t.latency_s * 1e3:.1f}",
            "-" if t.relative_speed is None else f"{t.relative_speed:.0%}",
            human_bytes(t.promised_bytes),
        )
        for t in targets
    ]
    head = ("OST", "OSS", "verdict", "used", "free", "writes", "reads", "ms an I/O", "of peers", "promised")
    return table(head, rows, caption=caption, left=3)
