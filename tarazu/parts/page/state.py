"""Each file system's figures, and what mdsd has given away: allocations and promises, no jobs, users or paths."""

from __future__ import annotations

from collections.abc import Sequence

from tarazu.parts.page import links
from tarazu.parts.page.markup import Markup, count, element, join, table
from tarazu.parts.page.seen import FileSystemOverview, SystemState, file_systems
from tarazu.parts.page.times import span
from tarazu.units import human_bytes, human_rate
from tarazu.wire.overview import PartTarget

MOST_PROMISED = 10


def boxes(rows: tuple[tuple[str, str, str], ...]) -> Markup:
    """Figures: name, value, note."""
    return element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", value, element("small", note)))
            for name, value, note in rows
        ),
        class_="figures",
    )


def figures(of: FileSystemOverview) -> Markup:
    """A file system in a few figures."""
    load = of.imbalance.load
    return boxes(
        (
            ("OSTs", f"{len(of.targets):,}", f"on {count(len({t.oss for t in of.targets}), 'server')}"),
            ("used", f"{of.fill:.1%}", f"of {human_bytes(of.total_bytes)}; the fullest OST {of.fullest:.1%}"),
            ("imbalance of fill", f"{of.imbalance.fill:.2f}", "fullest over mean; 1 is even"),
            (
                "imbalance of load",
                "-" if load is None else f"{load:.2f}",
                "nothing is moved" if load is None else "busiest over mean; 1 is even",
            ),
            ("writing", human_rate(of.writing_bytes_per_s), f"reading {human_rate(of.reading_bytes_per_s)}"),
            ("promised", human_bytes(of.promised_bytes), "to running steps, not written yet"),
        )
    )


def others(of: Sequence[PartTarget], where: str, top: str = "") -> Markup:
    """What parts have, a table for each kind. `where`: its caption's end."""
    tables = []
    for kind in dict.fromkeys(each.kind for each in of):
        rows = [each for each in of if each.kind == kind]
        cells: list[tuple[object, ...]] = [
            (
                each.name,
                links.server(each.server, top),
                each.verdict,
                each.why or each.note,
                *each.cells.values(),
            )
            for each in rows
        ]
        head = (kind, "server", "verdict", "why", *rows[0].cells)
        tables.append(table(head, cells, caption=f"{kind}s of {where}", left=4))
    return join(*tables)


def summary(seen: SystemState) -> Markup:
    """Each file system's figures."""
    if seen.overview is None:
        return join()
    return join(
        *(
            element(
                "section",
                element("h2", of.name, id=f"fs{at}"),
                figures(of),
                others([each for each in seen.overview.others if each.fs_name == of.name], of.name),
                aria_labelledby=f"fs{at}",
            )
            for at, of in enumerate(file_systems(seen.overview))
        )
    )


def allocations(seen: SystemState) -> Markup:
    work, overview = seen.work, seen.overview
    if work is None or overview is None:
        return element("section")
    gate = "open" if work.gate_open else f"closed: {work.why_closed}"
    answers = ", ".join(f"{count:,} {status}" for status, count in sorted(work.answers.items())) or "none"
    lines = (
        ("answered", f"{answers}, in the {span(work.uptime_s)} since mdsd started"),
        ("waiting", f"{work.waiting:,}"),
        ("standing", f"{work.promises:,} allocations with promises, of {work.promised_stripes:,} stripes"),
        ("promised", ", ".join(f"{fs} {human_bytes(b)}" for fs, b in sorted(work.promised_bytes.items()))),
        ("policy", f"{work.policy}; its gate is {gate}"),
    )
    most = sorted(overview.targets, key=lambda t: (-t.promised_bytes, t.name))[:MOST_PROMISED]
    rows: list[tuple[object, ...]] = [
        (
            links.ost(t),
            links.server(t.oss),
            t.verdict,
            human_bytes(t.promised_bytes),
            human_bytes(t.avail_bytes),
        )
        for t in most
        if t.promised_bytes
    ]
    parts: list[object] = [
        element("h2", "Allocations", id="work"),
        element(
            "dl",
            *(element("div", element("dt", name), element("dd", text or "nothing")) for name, text in lines),
            class_="lines",
        ),
    ]
    if rows:
        head = ("OST", "OSS", "verdict", "promised", "free")
        parts.append(table(head, rows, caption="OSTs with the most promised", left=3))
    return element("section", *parts, aria_labelledby="work")
