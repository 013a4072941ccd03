"""Figures, times and sentences for the templates, which escape all but Markup."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from tarazu.names import one_line
from tarazu.ost_state import LETTER
from tarazu.parts.changes import words as changed
from tarazu.units import figure, human_bytes, human_rate
from tarazu.wire.overview import Target


def moment(at_s: float) -> Markup:
    """In UTC; the page's script writes the browser's own time. The figure itself where no calendar has it."""
    try:
        utc = time.gmtime(at_s)
        said = time.strftime("%Y-%m-%d %H:%M:%S UTC", utc)
    except (OverflowError, ValueError, OSError):
        return Markup("<span>{}</span>").format(f"{at_s:g}")
    iso = time.strftime("%Y-%m-%dT%H:%M:%SZ", utc)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso, said, said)


def span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def count(number: int, what: str) -> str:
    """`1 server`, `1,200 servers`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.1f} ms"


def share(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:.{digits}%}"


def used(osts: Sequence[Target]) -> float:
    """The share of their space."""
    total = sum(t.total_bytes for t in osts)
    return 1 - sum(t.free_bytes for t in osts) / total if total else 0.0


def step(value: float | None) -> str:
    """Of five colours; `n` for what is not known."""
    return "n" if value is None else str(min(4, int(min(1.0, max(0.0, value)) * 5)))


def _shown(value: object) -> Any:
    """Control characters are written out."""
    return one_line(str(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    finalize=_shown,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {
    "bytes": human_bytes,
    "rate": human_rate,
    "figure": figure,
    "ms": ms,
    "share": share,
    "step": step,
    "used": used,
    "span": span,
    "moment": moment,
    "part": lambda name: quote(name, safe="", errors="replace"),
}
TEMPLATES.globals |= {"count": count, "letter": LETTER, "change": changed}
