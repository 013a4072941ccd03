"""A site's own bandwidth curves as CSV: `application,resources,bytes_per_s`, a row for each repetition."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tarazu.errors import BadInput
from tarazu.malformed import described
from tarazu.parts.forwarding.curve import Curve, curve
from tarazu.reading import content
from tarazu.table import Table

MAX_BYTES = 32 << 20


class CurveRow(msgspec.Struct, frozen=True):
    """One repetition."""

    application: Annotated[str, Meta(min_length=1)]
    resources: Annotated[int, Meta(ge=1, le=1_000_000)]
    bytes_per_s: Annotated[float, Meta(ge=1e-3, le=1e18)]


TABLE = Table(CurveRow)


def read(path: Path) -> dict[str, Curve]:
    """The curves of a file by application. Raises BadInput with file and line."""
    try:
        csv = content(path, "a CSV of bandwidth curves", MAX_BYTES)
    except FileNotFoundError as error:
        raise BadInput(str(path), "a CSV of bandwidth curves", error.strerror) from None
    return parse(csv, str(path))


def parse(text: str, where: str) -> dict[str, Curve]:
    """As `read`, of text; `where` names it in errors."""
    points: dict[str, list[tuple[int, float]]] = {}
    for row in TABLE.read_csv(io.StringIO(text, newline=""), where, notes=True):
        points.setdefault(row.application, []).append((row.resources, row.bytes_per_s))
    if not points:
        raise BadInput(where, f"rows of {','.join(TABLE.columns)}", "none")
    return {name: curve(each) for name, each in points.items()}


described(CurveRow)
