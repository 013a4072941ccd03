"""A site's own bandwidth curves as CSV: `application,resources,bytes_per_s`, a row for each repetition."""

from __future__ import annotations

import csv
import io
from math import isfinite
from pathlib import Path

from tarazu.errors import BadInput
from tarazu.forwarding.curve import curve
from tarazu.forwarding.curve_sets import CurveSet, NamedCurve
from tarazu.forwarding.reading import content

HEADER = ("application", "resources", "bytes_per_s")
MOST_RESOURCES = 1_000_000
MAX_BYTES = 32 << 20


def read(path: Path) -> CurveSet:
    """The curves of a file, in the order in which applications first occur. Raises BadInput with file and line."""
    try:
        found = content(path, "a CSV of bandwidth curves", MAX_BYTES)
    except FileNotFoundError as error:
        raise BadInput(str(path), "a CSV of bandwidth curves", error.strerror) from None
    return parse(found, str(path))


def parse(text: str, where: str) -> CurveSet:
    """As `read`, of text; `where` names it in errors."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    found: dict[str, list[tuple[int, float]]] = {}
    header = False
    try:
        for row in rows:
            if not row or row[0].startswith("#"):
                continue
            place = f"{where}:{rows.line_num}"
            if not header:
                if tuple(cell.strip() for cell in row) != HEADER:
                    raise BadInput(place, f"the columns {','.join(HEADER)}", ",".join(row))
                header = True
                continue
            application, point = _row(row, place)
            found.setdefault(application, []).append(point)
    except csv.Error as error:
        raise BadInput(f"{where}:{rows.line_num}", "a row of CSV", str(error)) from None
    if not found:
        raise BadInput(where, f"the columns {','.join(HEADER)} and rows of them", "none")
    return CurveSet(where, tuple(NamedCurve(name, curve(points)) for name, points in found.items()))


def _row(row: list[str], place: str) -> tuple[str, tuple[int, float]]:
    if len(row) != len(HEADER):
        raise BadInput(place, f"{len(HEADER)} columns", ",".join(row))
    application, resources, bandwidth = (cell.strip() for cell in row)
    if not application:
        raise BadInput(place, "the name of an application", "nothing")
    try:
        n = int(resources) if resources.isascii() and "_" not in resources else 0
    except ValueError:
        n = 0
    if not 1 <= n <= MOST_RESOURCES:
        raise BadInput(place, f"1 to {MOST_RESOURCES} resources", resources)
    try:
        value = float(bandwidth) if bandwidth.isascii() and "_" not in bandwidth else 0.0
    except ValueError:
        value = 0.0
    if not (isfinite(value) and 1e-3 <= value <= 1e18):
        raise BadInput(place, "bytes a second from 0.001 to 1e18", bandwidth)
    return application, (n, value)


def text(curves: CurveSet) -> str:
    """The CSV that `parse` reads back as the same curves."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for named in curves.curves:
        for point in named.curve.points:
            for value in point.bytes_per_s:
                writer.writerow((named.application, point.resources, repr(value)))
    return out.getvalue()
