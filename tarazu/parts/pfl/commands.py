"""Which progressive layout (PFL) fits a site's files: component ends and stripe counts, and what they cost.

lfs find /scratch -type f --lazy --printf '%s %p\\n' | tarazu change layouts --list - --osts 35
tarazu change layouts --list files.txt --osts 35 --mdt-room 8T        also with small files on MDTs (DoM)
tarazu change layouts --list files.txt --mdt-room free               the same, with what this file system's MDTs have
tarazu change layouts --darshan *.darshan --osts 35 --picture cost.svg
tarazu change layouts --history --today /scratch                     your recorded runs, beside the default layout there
tarazu change layouts --list files.txt --osts 35 --weight objects=2 --weight grants=0

Changes nothing. Tuned on half of the files, judged on the other half, beside the default layout, `layout.pfl_file`, the
paper's PFL 1 and 2 and plain layouts. The cost is seconds (of requests for objects, of writing, of the fullest OST, of
room and of grants) over those of the plain layout that is cheapest for the very file (docs/layouts.md). Prints the
section of a `layout.pfl_file` and the `lfs setstripe` command.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tarazu import config, native
from tarazu.cli.history.chosen import history_of
from tarazu.cli.output import Progress, number, print_json, print_table, size, whole
from tarazu.config import Settings
from tarazu.daemons.asking import view_in, view_of
from tarazu.errors import BadInput, LayoutError, TarazuError, TraceError
from tarazu.layout import pfl as pfl_file
from tarazu.layout import rules
from tarazu.layout.manager import FILE_SYSTEMS_OWN
from tarazu.layout.setstripe import parse_layout
from tarazu.layout.stripe_count import OST_BYTES_PER_S, REQUEST_S
from tarazu.lustre import LOV_ALL_STRIPES_WIDE, directory_default
from tarazu.model import Layout, SystemView
from tarazu.parts.mdt.asking import mdts_in, mdts_of
from tarazu.parts.mdt.model import Mdt
from tarazu.parts.pfl import gathered, listing, search
from tarazu.parts.pfl.cost import PARTS, Target, Weights
from tarazu.parts.pfl.played import Played, played
from tarazu.parts.pfl.sizes import BY_BYTES, Halves
from tarazu.parts.pfl.tuner import Tuned, Tuning, of_rule, tune
from tarazu.stats.client import mounts
from tarazu.units import MIB, counted, human_bytes

MOST_OSTS = 65_000
FREE = -1
"""In place of a size: as the view's MDTs have."""
LEAST_FILES = 2
MOST_NAMED = 5
"""Logs and records that cannot be read."""
LEAST_REQUEST_S = 1e-6


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--list",
        action="append",
        default=[],
        metavar="FILE",
        help="lines of size and path; -: standard input",
    )
    parser.add_argument("--darshan", nargs="+", default=[], metavar="LOG", help="what jobs have written")
    parser.add_argument("--mount", default="/", metavar="DIR", help="of logs: files below it only")
    parser.add_argument("--history", action="store_true", help="what your recorded runs have written")
    parser.add_argument("--fs", default="", metavar="NAME", help="which file system, where there are several")
    there = parser.add_mutually_exclusive_group()
    there.add_argument("--osts", type=whole(1, MOST_OSTS), default=0, metavar="N", help="number of OSTs")
    there.add_argument("--view", metavar="FILE", help="the file system as `tarazu status --json` prints it")
    parser.add_argument(
        "--today",
        action="append",
        default=[],
        metavar="LAYOUT",
        help="what there is today: a directory, or options of `lfs setstripe` (default: that of the Lustre mount)",
    )
    parser.add_argument(
        "--components",
        type=whole(1, 8),
        default=search.MOST_COMPONENTS,
        metavar="N",
        help=f"at most (default {search.MOST_COMPONENTS}), and one on MDTs",
    )
    parser.add_argument("--stripe-size", type=size, default=MIB, metavar="SIZE", help="(default 1M)")
    parser.add_argument(
        "--mdt-room",
        type=lambda text: FREE if text == "free" else size(text),
        default=0,
        metavar="SIZE",
        help="of all MDTs, for parts of these files; free: what they have left, but for allocate.reserve_share"
        " (default: none, no DoM)",
    )
    parser.add_argument("--no-sel", action="store_true", help="no components that extend themselves")
    parser.add_argument(
        "--speed",
        type=size,
        default=0,
        metavar="SIZE",
        help=f"bytes/s of an OST (default: as seen, else {OST_BYTES_PER_S / 1e6:.0f} MB/s)",
    )
    parser.add_argument(
        "--request",
        type=number(LEAST_REQUEST_S, 10),
        default=REQUEST_S,
        metavar="S",
        help=f"seconds of a request without bytes (default {REQUEST_S:g})",
    )
    parser.add_argument(
        "--weight",
        action="append",
        default=[],
        metavar="PART=X",
        help=f"of a part of the cost (default 1): {', '.join(PARTS)}",
    )
    parser.add_argument(
        "--by-bytes",
        type=number(0, 1),
        default=BY_BYTES,
        metavar="S",
        help=f"of the weight of files: share that goes by bytes, the rest by number (default {BY_BYTES})",
    )
    parser.add_argument("--picture", metavar="FILE", help="draw the costs (.png, .svg, .pdf)")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    if options.picture:
        from tarazu.parts.pfl.picture import draw, drawable

        drawable(Path(options.picture))
    target, room_bytes = _target(settings, options)
    halves, notes = Halves(), list[str]()
    site = _today(settings, options, target, notes)
    with Progress() as progress:
        for path in listing.sources(options.list):
            listed = listing.read(path, halves, progress)
            notes += [f"{path}: {counted(listed.odd, 'line')} without a size, left out"] if listed.odd else []
            if listed.directories:
                notes.append(f"{path}: {counted(listed.directories, 'directory')}, left out")
        damaged: list[TarazuError] = []
        for number_of, path in enumerate(options.darshan, 1):
            progress(f"{number_of} of {counted(len(options.darshan), 'log')}")
            try:
                gathered.add_log(path, options.mount, halves)
            except TraceError as error:
                damaged.append(error)
        if options.darshan and len(damaged) == len(options.darshan):
            raise damaged[0]
        if options.history:
            gathered.add_history(history_of(options), options.fs, halves, damaged.append)
        notes += [f"left out: {error}" for error in damaged[:MOST_NAMED]]
        notes += [f"left out: {len(damaged) - MOST_NAMED} more"] if len(damaged) > MOST_NAMED else []
        if not (options.list or options.darshan or options.history):
            raise BadInput("tarazu change layouts", "--list, --darshan or --history", "none")
        first, second, by = halves.split()
        if min(first.files, second.files) < 1 or halves.all.files < LEAST_FILES:
            raise BadInput("tarazu change layouts", "files for two halves", counted(halves.all.files, "file"))
        progress("searching")
        wanted = Tuning(target, options.components, room_bytes, options.by_bytes, not options.no_sel)
        found = tune(first, second, by, wanted, site)
        progress("Lustre's own allocator")
        layouts = {row.name: parse_layout(row.setstripe)[0] for row in found.rows}
        beside = played(second.classes(options.by_bytes), target, layouts)
    picture = str(draw(found, second, target, Path(options.picture))) if options.picture else ""
    if options.json:
        print_json({"tuned": found, "played": beside, "target": target, "notes": notes})
        return 0
    _print(found, beside, target)
    for note in [*notes, *([f"picture: {picture}"] if picture else [])]:
        print(note)
    return 0


def _target(settings: Settings, options: argparse.Namespace) -> tuple[Target, int]:
    """What files are laid out for, and the bytes of them that MDTs may hold. Raises BadInput, Unavailable."""
    if options.stripe_size % (64 << 10) or not 0 < options.stripe_size < 1 << 32:
        raise BadInput("--stripe-size", "a multiple of 64K below 4G", options.stripe_size)
    if options.speed and options.speed < MIB:
        raise BadInput("--speed", "1M or more", options.speed)
    known: dict[str, object] = {}
    room_bytes = options.mdt_room
    if options.osts:
        known["osts"] = options.osts
        if room_bytes == FREE:
            raise BadInput("--mdt-room", "a size, where --osts stands for the view", "free")
    else:
        view = view_in(options.view) if options.view else view_of(settings, options.fs)[0]
        mdts = mdts_in(options.view, view.fs_name) if options.view else mdts_of(settings, view.fs_name)
        known |= _known(view, mdts)
        if room_bytes == FREE:
            room_bytes = _mdt_room(view.fs_name, mdts, settings.allocate.weights.reserve_share)
    if options.speed:
        known["ost_bytes_per_s"] = float(options.speed)
    target = Target(
        **known,  # type: ignore[arg-type]
        request_s=options.request,
        stripe_size_bytes=options.stripe_size,
        weights=_weights(options.weight),
    )
    return target, room_bytes


def _mdt_room(fs_name: str, mdts: Sequence[Mdt], reserve_share: float) -> int:
    """Bytes. Raises BadInput where there is no MDT that can be used."""
    usable = [m for m in mdts if m.usable]
    if not usable:
        raise BadInput(fs_name or "--view", "an MDT that can be used (tarazu-ossd runs on each MDS)", "none")
    return sum(max(0, m.avail_bytes - int(m.total_bytes * reserve_share)) for m in usable)


def _known(view: SystemView, mdts: Sequence[Mdt]) -> dict[str, object]:
    """OSTs, their room, the rate of a usual one where any was seen busy, and how many MDTs there are."""
    usable = [o for o in view.osts if o.usable]
    if not usable:
        raise BadInput(view.fs_name or "--view", "an OST that can be used", "none")
    known: dict[str, object] = {
        "osts": len(usable),
        "room_bytes": max(1, sum(o.avail_bytes for o in usable) // len(usable)),
        "mdts": max(1, sum(m.usable for m in mdts)),
    }
    seen = sorted(o.peak_bytes_per_s for o in usable if o.peak_bytes_per_s)
    if seen:
        known["ost_bytes_per_s"] = max(float(MIB), seen[len(seen) * 3 // 4])
    return known


def _weights(given: list[str]) -> Weights:
    values: dict[str, float] = {}
    for text in given:
        part, _, value = text.partition("=")
        if part not in PARTS:
            raise BadInput("--weight", f"one of {', '.join(PARTS)} and a number, objects=2", text)
        try:
            values[part] = number(0, 1e6)(value)
        except argparse.ArgumentTypeError as error:
            raise BadInput(
                f"--weight {part}", "a number, 0 to 1e+06", str(error).rpartition("found ")[2].strip("'")
            ) from None
    weights = Weights(**values)
    if not weights.array.any():
        raise BadInput("--weight", "a part with a weight above 0", "none")
    return weights


def _today(
    settings: Settings, options: argparse.Namespace, target: Target, notes: list[str]
) -> dict[str, Layout]:
    """Layouts of the site by name. Raises BadInput, LayoutError; a mount that nobody named is left out with a note."""
    found: dict[str, Layout] = {}
    if not options.today:
        own = [m for m in mounts() if not m.subdirectory]
        for path in [m.path for m in own if options.fs in ("", m.fs_name)][:1]:
            try:
                found[f"default of {path}"] = _default(path, target)
            except BadInput as error:
                notes.append(f"left out: {error}")
    for text in options.today:
        if os.path.isdir(text):
            found[f"default of {text}"] = _default(text, target)
        elif text.lstrip().startswith("-"):
            layout = _everywhere(parse_layout(text)[0], target)
            rules.check(layout, f"--today {text!r}")
            found[f"today, {text}"] = layout
        else:
            raise BadInput("--today", "a directory, or options such as '-E 1G -c 1 -E -1 -c 8'", text)
    if settings.layout.pfl_file:
        for rule in pfl_file.read(settings.layout.pfl_file):
            found[f"pfl_file [{rule.name}]"] = of_rule(rule, target.stripe_size_bytes)
    return found


def _default(directory: str, target: Target) -> Layout:
    """What a new file of a directory gets. Raises BadInput."""
    try:
        blob = directory_default(directory)
    except OSError as error:
        raise BadInput(directory, "a directory of Lustre with a default layout", error.strerror) from None
    if not blob:
        return _everywhere(Layout((FILE_SYSTEMS_OWN,)), target)
    try:
        decoded = native.decode_lov(blob)
    except LayoutError as error:
        raise BadInput(directory, "a default layout that can be read", str(error)) from None
    if decoded.odd:
        raise BadInput(directory, "a plain or progressive default layout", f"one {' and '.join(decoded.odd)}")
    return _everywhere(decoded.layout(), target)


def _everywhere(layout: Layout, target: Target) -> Layout:
    """With numbers for "as the file system's own" (0) and "on all OSTs" (-1, or what a default layout has for it)."""
    components = []
    for c in layout.components:
        on_all = c.stripe_count == -1 or c.stripe_count >= LOV_ALL_STRIPES_WIDE
        count = target.widest if on_all else c.stripe_count
        components.append(
            msgspec.structs.replace(
                c,
                stripe_count=count if c.pattern == "mdt" else count or FILE_SYSTEMS_OWN.stripe_count,
                stripe_size_bytes=c.stripe_size_bytes or FILE_SYSTEMS_OWN.stripe_size_bytes,
            )
        )
    return msgspec.structs.replace(layout, components=tuple(components))


def _print(found: Tuned, beside: Mapping[str, Played], target: Target) -> None:
    print(
        f"{counted(found.files, 'file')}, {human_bytes(found.bytes)}, on {counted(found.osts, 'OST')}: tuned on"
        f" {found.files - found.judged_files}, judged on {found.judged_files}; halves by {found.halves_by}\n"
    )
    rows = sorted(found.rows, key=lambda row: row.cost.total)
    print_table(
        ("layout", "cost", *PARTS, "objects", "≤ 64 KiB", "Lustre s", "bound s"),
        [
            (
                row.name,
                f"{row.cost.total:.4g}",
                *(f"{row.cost.parts[part]:.3g}" for part in PARTS),
                f"{row.cost.objects:.3g}",
                f"{row.cost.small_objects:.3g}",
                *_played(beside.get(row.name)),
            )
            for row in rows
        ],
    )
    print(
        "\ncost and its parts: 1 is what the cheapest plain layout for the very file costs; objects a file, and a file"
        "\nof at most 64 KiB; Lustre s: drawn files written at one time where a model of Lustre's allocator places"
        "\nthem; bound s: what no placement beats"
    )
    least = min(found.curve.values())
    steps = ", ".join(f"{n}: {value / least - 1 if least else 0:+.1%}" for n, value in found.curve.items())
    print(f"cheapest by number of components: {steps}")
    print(f"\nrecommended: {found.recommended}: {found.because}\n")
    row = found.row(found.recommended)
    print("nothing to change" if row.kind == "site" else found.command)
    if found.said != found.recommended:
        print(f"\na PFL file cannot say that; of what it can say the cheapest is {found.said}:")
    print(f"\n{found.pfl_file}", end="")
    if row.cost.mdt_bytes:
        print(f"\non MDTs: {human_bytes(row.cost.mdt_bytes * found.files)} of these files")


def _played(of: Played | None) -> tuple[str, str]:
    return ("-", "-") if of is None else (f"{of.lustre_s:.4g}", f"{of.bound_s:.4g}")
