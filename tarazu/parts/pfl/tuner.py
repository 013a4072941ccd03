"""The PFL tuner (paper, section 8.6): the cheapest layouts for half of a site's files, judged on the other half beside
what the site has, the paper's two progressive layouts and plain ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tarazu.layout.pfl import PflRule
from tarazu.layout.setstripe import format_layout
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.parts.pfl.cost import Cost, Target, of_layout, stripe_size
from tarazu.parts.pfl.later import widened_later
from tarazu.parts.pfl.search import MOST_COMPONENTS, SAME, Found, cheapest, fewest_of, grid
from tarazu.parts.pfl.sizes import BY_BYTES, Half, expected
from tarazu.units import GIB, MIB, exact_bytes

TUNED, TUNED_MORE = "tuned", "tuned, with DoM or SEL"
WORTH = 0.01
"""Share of the cost that a tuned layout has to save beside the best of the others, to be recommended."""
PAPERS = {
    "PFL 1 of the paper": ((128 * MIB, 1), (512 * MIB, 3), (2 * GIB, 8), (EOF, 16)),
    "PFL 2 of the paper": ((128 * MIB, 1), (2 * GIB, 12), (EOF, 32)),
}
"""Its section 7.2: ends and stripe counts."""
PLAIN_COUNTS = (1, 4, 8)


class Row(msgspec.Struct, frozen=True):
    """One layout and what it costs the files that it was not tuned on."""

    name: str
    setstripe: str
    """Options of `lfs setstripe`."""
    cost: Cost
    tuned_on: Cost
    """The same for the half that was tuned on."""
    kind: str
    """`tuned`, `site` or `plain`."""
    loss: float
    """Its cost over that of the cheapest layout of the search for the very files that it is judged on, less 1."""


class Tuned(msgspec.Struct, frozen=True):
    """The answer."""

    files: int
    bytes: int
    judged_files: int
    halves_by: str
    """What was kept together: run, directory, line; or name."""
    osts: int
    rows: tuple[Row, ...]
    """Tuned ones first."""
    recommended: str
    """Name of the row."""
    because: str
    pfl_file: str
    """A section of `layout.pfl_file`: the recommended layout, or the best that such a file can say."""
    command: str
    """`lfs setstripe` with the recommended layout."""
    curve: dict[int, float]
    """Number of components → cost of the cheapest layout of so many, on what was tuned on."""
    said: str
    """Name of the row that `pfl_file` is."""

    def row(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)


class Tuning(msgspec.Struct, frozen=True):
    """What is asked for."""

    target: Target
    most_components: int = MOST_COMPONENTS
    """On OSTs; a beginning on an MDT is one more."""
    mdt_room_bytes: int = 0
    """Of MDTs, for what all these files put there; 0: no component on an MDT."""
    by_bytes: float = BY_BYTES
    """As in `Sizes.classes`."""
    extending: bool = True
    """Whether components may extend themselves (SEL)."""


def progressive(parts: Sequence[tuple[int, int]], stripe_size_bytes: int) -> Layout:
    """(end, stripe count) of each component → the layout."""
    starts = [0, *(end for end, _ in parts)]
    components = tuple(
        Component(start, end, stripe_size(end, stripe_size_bytes), count)
        for start, (end, count) in zip(starts, parts)
    )
    return Layout(components, len(components) > 1)


def of_rule(rule: PflRule, stripe_size_bytes: int) -> Layout:
    """The layout of a section of a PFL file."""
    return progressive([(e.end_bytes, e.stripe_count) for e in rule.extents], stripe_size_bytes)


def usual(target: Target) -> dict[str, Layout]:
    """The paper's and plain layouts."""
    size = target.stripe_size_bytes
    found = {name: progressive(parts, size) for name, parts in PAPERS.items()}
    for count in PLAIN_COUNTS:
        if count < target.osts:
            found[f"plain, {count}"] = progressive([(EOF, count)], size)
    widest = f"all {target.osts}" if target.widest == target.osts else str(target.widest)
    found[f"plain, {widest}"] = progressive([(EOF, target.widest)], size)
    return found


def tune(
    tuned_on: Half, judged_on: Half, halves_by: str, wanted: Tuning, site: Mapping[str, Layout]
) -> Tuned:
    """site: layouts that are there today, by name. Both halves have files."""
    target = wanted.target
    train, test = tuned_on.classes(wanted.by_bytes), judged_on.classes(wanted.by_bytes)
    to_come = expected(train)
    simple = grid(to_come, target, wanted.most_components)
    paths: dict[str, list[Found]] = {TUNED: cheapest(to_come, target, simple)}
    special = grid(
        to_come,
        target,
        wanted.most_components + 1,
        extending=wanted.extending,
        dom_bytes=wanted.mdt_room_bytes * tuned_on.files / (tuned_on.files + judged_on.files),
    )
    if special.dom_ends or special.extensions:
        # One more only where the beginning lies on an MDT.
        more = [
            f
            for f in cheapest(to_come, target, special)
            if len(f.layout.components) <= wanted.most_components or f.layout.components[0].pattern == "mdt"
        ]
        if more[-1].cost < paths[TUNED][-1].cost * (1 - SAME):
            paths[TUNED_MORE] = more
    layouts = {
        name: widened_later(fewest_of(path).layout, tuned_on, wanted.by_bytes, target, simple.ends)
        for name, path in paths.items()
    }
    kinds = dict.fromkeys(layouts, "tuned")
    for name, layout in site.items():
        layouts[name] = layout
        kinds[name] = "site"
    for name, layout in usual(target).items():
        layouts[name] = layout
        kinds[name] = "plain"
    least = cheapest(test, target, grid(test, target, wanted.most_components))[-1].cost
    costs = {name: of_layout(test, target, layout) for name, layout in layouts.items()}
    least = min([least, *(cost.total for cost in costs.values())])
    rows = tuple(
        Row(
            name,
            format_layout(layout),
            costs[name],
            of_layout(train, target, layout),
            kinds[name],
            costs[name].total / least - 1 if least else 0.0,
        )
        for name, layout in layouts.items()
    )
    best, because = recommended(rows)
    # A PFL file knows neither components on an MDT nor such that extend themselves.
    said = (
        best
        if can_say(layouts[best])
        else min((row for row in rows if can_say(layouts[row.name])), key=lambda row: row.cost.total).name
    )
    return Tuned(
        files=tuned_on.files + judged_on.files,
        bytes=tuned_on.bytes + judged_on.bytes,
        judged_files=judged_on.files,
        halves_by=halves_by,
        osts=target.osts,
        rows=rows,
        recommended=best,
        because=because,
        pfl_file=section(layouts[said]),
        said=said,
        command=f"lfs setstripe {format_layout(layouts[best])} DIRECTORY",
        curve={f.components: f.cost for f in paths[TUNED]},
    )


def recommended(rows: Sequence[Row]) -> tuple[str, str]:
    """Name of a row, and why."""
    best = min((row for row in rows if row.kind == "tuned"), key=lambda row: row.tuned_on.total)
    # Of those that are equal, the shortest.
    others = sorted(
        (row for row in rows if row.kind != "tuned"),
        key=lambda row: (round(row.cost.total, 9), len(row.setstripe)),
    )
    cheapest_other = others[0]
    # Of those that cost as much, what the site has needs no change.
    other = next(
        (
            row
            for row in others
            if row.kind == "site" and row.cost.total <= cheapest_other.cost.total * (1 + WORTH)
        ),
        cheapest_other,
    )
    saved = 1 - best.cost.total / other.cost.total if other.cost.total else 0.0
    keep = "keep it: " if other.kind == "site" else ""
    if saved >= WORTH:
        return best.name, f"{saved:.1%} cheaper than the best of the others ({other.name})"
    if saved < 0:
        return (
            other.name,
            f"{keep}tuning is not better: {-saved:.1%} dearer than {other.name} on files that it had not seen",
        )
    return (
        other.name,
        f"{keep}tuning is not better: it saves {saved:.2%} beside {other.name}, less than {WORTH:.0%}",
    )


def can_say(layout: Layout) -> bool:
    """Whether a PFL file can say it."""
    return all(c.pattern == "raid0" and not c.extension_bytes and not c.pool for c in layout.components)


def section(layout: Layout) -> str:
    """Of a PFL file, for all paths."""
    extents = ", ".join(
        f"{exact_bytes(c.start_bytes) if c.start_bytes else 0}-"
        f"{'EOF' if c.end_bytes == EOF else exact_bytes(c.end_bytes)}:{c.stripe_count}"
        for c in layout.components
    )
    return f"[tuned]\nmatch = /*\ncomponents = {extents}\n"
