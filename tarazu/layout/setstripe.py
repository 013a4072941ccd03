"""Layouts and OST lists as text: the options of `lfs setstripe` that they equal, and back."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tarazu import ranges
from tarazu.errors import LayoutError
from tarazu.lustre import EOF, MAX_OSTS
from tarazu.model import Component, Layout
from tarazu.units import MIB, exact_bytes, parse_bytes


def unfold(text: str) -> tuple[int, ...]:
    """OSTs, `"0-3,7"` → (0, 1, 2, 3, 7), in the order written. Raises LayoutError."""
    try:
        osts = ranges.unfold(text, MAX_OSTS)
    except ValueError:
        osts = ()
    if not osts:
        raise LayoutError("OST list", "indices such as 0-3,7", text)
    return osts


def format_layout(layout: Layout, osts: Sequence[Sequence[int]] = ()) -> str:
    """`-E 128M -c 1 -S 1M … -E -1 …`; with `osts`, explicit lists (`-o`) or start hints (`-i`)."""
    words: list[str] = []
    for number, component in enumerate(layout.components):
        if layout.composite:
            words += ["-E", "-1" if component.end_bytes == EOF else exact_bytes(component.end_bytes)]
        if component.pattern == "mdt":
            words += ["-L", "mdt"]
            continue
        words += ["-C" if component.pattern == "overstriped" else "-c", str(component.stripe_count)]
        words += ["-S", exact_bytes(component.stripe_size_bytes)]
        if component.pool:
            words += ["-p", component.pool]
        if component.extension_bytes:
            words += ["-z", exact_bytes(component.extension_bytes)]
        chosen = osts[number] if number < len(osts) else ()
        if chosen and len(chosen) == component.stripe_count:
            words += ["-o", ",".join(map(str, chosen))]
        elif chosen:
            words += ["-i", str(chosen[0])]
    return shlex.join(words)


def parse_layout(text: str) -> tuple[Layout, tuple[tuple[int, ...], ...]]:
    """The inverse of `format_layout`: the layout, and the OST list or start hint of each component."""
    groups: list[dict[str, str]] = [{}]
    words = shlex.split(text)
    if len(words) % 2:
        raise LayoutError(f"layout {text!r}", "options of `lfs setstripe`, each with its value", words[-1])
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option not in ("-E", "-L", "-c", "-C", "-S", "-p", "-z", "-o", "-i"):
            raise LayoutError(f"layout {text!r}", "options among -E -L -c -C -S -p -z -o -i", option)
        if option == "-E" and groups[-1]:
            groups.append({})
        groups[-1][option] = value
    composite = "-E" in groups[0]
    components: list[Component] = []
    osts: list[tuple[int, ...]] = []
    start = 0
    for group in groups:
        try:
            end = _end(group.get("-E", "-1"))
            components.append(_component(group, start, end))
            osts.append(unfold(group["-o"]) if "-o" in group else _hint(group))
        except ValueError as error:
            raise LayoutError(f"layout {text!r}", "valid options", str(error)) from None
        start = end
    return Layout(tuple(components), composite), tuple(osts)


def _end(text: str) -> int:
    return EOF if text.lower() in ("-1", "eof") else parse_bytes(text)


def _hint(group: dict[str, str]) -> tuple[int, ...]:
    return (int(group["-i"]),) if int(group.get("-i", "-1")) >= 0 else ()


def _component(group: dict[str, str], start: int, end: int) -> Component:
    if group.get("-L") == "mdt":
        return Component(start, end, min(end, 1 << 30), 0, pattern="mdt")
    return Component(
        start_bytes=start,
        end_bytes=end,
        stripe_size_bytes=parse_bytes(group.get("-S", str(MIB))),
        stripe_count=int(group.get("-C", group.get("-c", "1"))),
        pattern="overstriped" if "-C" in group else "raid0",
        pool=group.get("-p", ""),
        extension_bytes=parse_bytes(group.get("-z", "0")),
    )
