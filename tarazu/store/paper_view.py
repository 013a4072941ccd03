"""The paper's tables 1, 2, 4 and 5: a view of plans for people, never what is handed to Lustre."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tarazu.model import Layout

ALIGNMENT_BYTES = 65536
"""The paper's AP; a stripe size is an even multiple of it."""


class PaperFile(msgspec.Struct, frozen=True):
    """A file to show: its key, forecast size, rank, layout and, once allocated, OSTs per component."""

    key: str
    size_bytes: int
    rank: int
    layout: Layout
    osts: tuple[tuple[int, ...], ...] | None = None


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


def stripe_size(write_bytes: int, stripe_count: int) -> int:
    """Equations 2 and 3: the stripe size with which each of `stripe_count` OSTs gets one equal stripe.

    N = ⌈writeBytes / (AP·2·stripeCount)⌉; writeBytes becomes AP·2·N·stripeCount, in stripeCount stripes.
    """
    n = -(-write_bytes // (ALIGNMENT_BYTES * 2 * stripe_count))
    aligned = ALIGNMENT_BYTES * 2 * n * stripe_count
    return aligned // stripe_count


def paper_rows(mount: str, files: Iterable[PaperFile]) -> list[PaperRow]:
    """One row per file of a plain layout, one per extent that the file reaches of a composite one.

    A file's last extent ends at its size. Components without objects on OSTs (DoM) are left out.
    """
    root = mount.rstrip("/")
    rows = []
    for file in files:
        components = file.layout.components
        for i, component in enumerate(components):
            if component.stripe_count == 0 or (i and component.start_bytes >= file.size_bytes):
                continue
            end = min(component.end_bytes, file.size_bytes)
            osts = file.osts[i] if file.osts is not None and i < len(file.osts) else ()
            composite = file.layout.composite
            rows.append(
                PaperRow(
                    file_name=root + file.key,
                    file_size=file.size_bytes,
                    extent_id=i + 1 if composite else None,
                    extent_start=component.start_bytes if composite else None,
                    extent_end=end if composite else None,
                    stripe_size=stripe_size(max(end - component.start_bytes, 0), component.stripe_count),
                    stripe_count=component.stripe_count,
                    rank=file.rank,
                    ost_list=" ".join(map(str, osts)) if file.osts is not None else None,
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
