"""Times for people: in UTC as they are written, in the browser's own zone once the page's script has run."""

from __future__ import annotations

import time

from tarazu.parts.page.markup import Markup, element


def moment(at_s: float) -> Markup:
    """The exact UTC stays as the title; the figure itself where no calendar has it."""
    try:
        utc = time.gmtime(at_s)
        said = time.strftime("%Y-%m-%d %H:%M:%S UTC", utc)
    except (OverflowError, ValueError, OSError):
        return element("span", f"{at_s:g}")
    return element("time", said, datetime=time.strftime("%Y-%m-%dT%H:%M:%SZ", utc), title=said)


def zone() -> Markup:
    """Which zone that is; the script writes the browser's there."""
    return element("p", "Times are in UTC.", class_="note zone")


def span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
