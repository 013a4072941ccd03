"""A period as two tables of CSV: a row an interval, a row a job; for whoever wants to look at it in other ways."""

from __future__ import annotations

import io
from collections.abc import Iterable
from math import isnan
from typing import Any

from tarazu.forwarding.bursts.characteristics import Character
from tarazu.forwarding.bursts.day import Period
from tarazu.names import to_text
from tarazu.table import write_csv

CHARACTER = Character.__struct_fields__


def intervals(period: Period) -> str:
    """time_s, bytes, shares of the busiest nodes and cabinets; for each mapping the share of the busiest I/O nodes, and
    how many I/O nodes serve the busiest nodes. Empty where it is not known.
    """
    shares = period.shares
    header = ["time_s", "bytes", "busiest_nodes", "busiest_cabinets"]
    columns: list[Iterable[float]] = [shares.time_s, shares.bytes, shares.nodes, shares.cabinets]
    for name, mapped in shares.mapped.items():
        header += [f"busiest_io_nodes {name}", f"io_nodes_of_busiest {name}"]
        columns += [mapped.busiest, mapped.of_busiest]
    return _csv(header, zip(*(map(_value, column) for column in columns), strict=True))


def jobs(period: Period) -> str:
    """id, user, name, start_s, end_s, and what it was like (`Character`). Empty where it is not known."""
    rows = (
        (
            *map(to_text, (moved.job.id, moved.job.user, moved.job.name)),
            *map(_value, (moved.job.start_s, moved.job.end_s)),
            *(_value(getattr(one, field)) for field in CHARACTER),
        )
        for moved, one in zip(period.moved, period.characters, strict=True)
    )
    return _csv(["id", "user", "name", "start_s", "end_s", *CHARACTER], rows)


def _csv(header: list[str], rows: Iterable[tuple[Any, ...]]) -> str:
    text = io.StringIO()
    write_csv(text, header, rows)
    return text.getvalue()


def _value(found: Any) -> Any:
    """Whole numbers without a point; nothing for what is not known."""
    if found is None or isinstance(found, bool | str):
        return found
    number = float(found)
    if isnan(number):
        return None
    return int(number) if number.is_integer() else f"{number:.9g}"
