"""The paper's tables 1, 2, 4 and 5: a view of plans for people, never what is handed to Lustre."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tarazu import config
from tarazu.cli.output import print_json, print_table
from tarazu.layout.stripe_size import contiguous_stripe_size
from tarazu.stats import client
from tarazu.store.rows import FileRow, PlanRow


class PaperRow(msgspec.Struct, frozen=True):
    """One row. Extent columns are None in the tables of plain layouts."""

    file_name: str
    file_size: int
    extent_id: int | None
    extent_start: int | None
    extent_end: int | None
    stripe_size: int
    stripe_count: int
    rank: int
    ost_list: str | None
    """None in tables 1 and 2; else indices separated by spaces."""


def paper_rows(mount: str, files: Iterable[FileRow]) -> list[PaperRow]:
    """One row per file of a plain layout, one per extent that the file reaches of a composite one.

    A file's last extent ends at its size. Files that are left to Lustre and components without objects on OSTs (DoM)
    are left out.
    """
    root = mount.rstrip("/")
    rows = []
    for file in files:
        name, size_bytes, placement = file.forecast.name, file.forecast.size_bytes, file.placement
        for i, component in enumerate(file.layout.components if file.layout else ()):
            start, count = component.start_bytes, component.stripe_count
            if count == 0 or (i and start >= size_bytes):
                continue
            end = min(component.end_bytes, size_bytes)
            osts = placement.osts[i] if placement and i < len(placement.osts) else ()
            composite = file.layout is not None and file.layout.composite
            rows.append(
                PaperRow(
                    file_name=root + name.key,
                    file_size=size_bytes,
                    extent_id=i + 1 if composite else None,
                    extent_start=start if composite else None,
                    extent_end=end if composite else None,
                    stripe_size=contiguous_stripe_size(end - start, count) if end > start else 0,
                    stripe_count=count,
                    rank=name.rank,
                    ost_list=" ".join(map(str, osts)) if placement else None,
                )
            )
    return rows


def paper_tables(rows: Sequence[PaperRow]) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """(header, rows) as the paper prints them: sizes with thousands separators; composite files first."""
    tables = []
    for extents in (True, False):
        part = [r for r in rows if (r.extent_id is not None) == extents]
        if part:
            allocated = any(r.ost_list is not None for r in part)
            tables.append((_header(extents, allocated), [_cells(r, extents, allocated) for r in part]))
    return tables


def _header(extents: bool, allocated: bool) -> tuple[str, ...]:
    middle = ("File Size", "Extent ID", "Extent Start", "Extent End") if extents else ()
    last = ("OST List",) if allocated else ()
    return ("File Name", *middle, "Stripe Size", "Stripe Count", "MPI Rank", *last)


def _cells(row: PaperRow, extents: bool, allocated: bool) -> tuple[str, ...]:
    middle = (
        (f"{row.file_size:,}", str(row.extent_id), f"{row.extent_start:,}", f"{row.extent_end:,}")
        if extents
        else ()
    )
    last = (row.ost_list or "",) if allocated else ()
    return (row.file_name, *middle, f"{row.stripe_size:,}", str(row.stripe_count), str(row.rank), *last)


def show(plan: PlanRow, files: list[FileRow], *, as_json: bool) -> None:
    """What `tarazu history db show --paper` prints."""
    mounts = [m for m in client.mounts(config.root()) if m.fs_name == plan.step.fs_name]
    mount = mounts[0].path if mounts else f"/{plan.step.fs_name}"
    rows = paper_rows(mount, files)
    if as_json:
        print_json(rows)
        return
    for header, cells in paper_tables(rows):
        print_table(header, cells)
        print()
