"""What mdsd has given away: allocations, promises. Of jobs, users and paths nothing is told here."""

from __future__ import annotations

from tarazu.daemons.page.markup import Markup, element, table
from tarazu.daemons.page.seen import Seen
from tarazu.daemons.page.state import span
from tarazu.units import human_bytes

MOST_PROMISED = 10


def allocations(seen: Seen) -> Markup:
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
        (t.name, t.oss, t.verdict, human_bytes(t.promised_bytes), human_bytes(t.avail_bytes))
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
