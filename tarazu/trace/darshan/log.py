"""A Darshan log as arrays: who did what to which file, where Lustre had it, and what the log cannot tell."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from tarazu.model import Layout

GAPS = {
    "no-io": "neither POSIX nor STDIO was recorded",
    "partial": "the recorder ran out of memory: records of a module are missing",
    "unended": "the job did not end as it should: its run time is not known",
    "no-lustre": "no LUSTRE module: where the files were is not known",
    "no-layout": "files on Lustre without a record of their layout",
    "short-layout": "the logged components end before the last byte: the others got their objects after the open",
    "no-osts": "layouts without usable OST indices",
    "odd-layout": "layouts that are not striped as RAID 0 (foreign, or a composite one seen by an old Darshan)",
    "mirrored": "files with several mirrors: each write is made again for every mirror when they are synchronised",
    "shared": "summed over all ranks (rank -1): which rank did what is not known",
    "mmap": "mapped into memory: bytes moved through the mapping are not counted",
    "stdio-only": "used through STDIO only: times are those of copies to and from the library's buffer",
    "no-bytes": "opened, no bytes counted: empty, or moved by calls that Darshan does not see (copy_file_range)",
    "no-name": "records whose name is not in the log",
    "anonymised": "names are hashes: files cannot be recognised by their names",
}
"""Word → what it means. A gap is a fact about a log, not an error: every other figure of the log holds."""


class Gap(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a log cannot tell."""

    kind: str
    """A word of GAPS."""
    text: str
    """One line for people, with the numbers of this log."""
    records: tuple[int, ...] = ()
    """Ids of the records that it is about; empty: the whole log."""


class Module(msgspec.Struct, frozen=True):
    """The records of one module; all arrays have one entry for each."""

    name: str
    version: int
    partial: bool
    records: NDArray[np.uint64]
    ranks: NDArray[np.int64]
    """-1: the sum over all ranks."""
    counters: dict[str, NDArray[np.int64]]
    """By Darshan's own names, `POSIX_BYTES_READ`."""
    fcounters: dict[str, NDArray[np.float64]]
    """Seconds; timestamps are after the start of the job."""
    files: NDArray[np.uint64]
    """Record of the file; other than `records` where those are data sets in it (H5D) or variables (PNETCDF_VAR)."""

    def __len__(self) -> int:
        return len(self.records)


ACCESS = np.dtype(
    [
        ("record", np.uint64),
        ("rank", np.int64),  # -1: the sum over all ranks
        ("stdio", np.bool_),  # else POSIX
        ("opens", np.int64),
        ("reads", np.int64),
        ("writes", np.int64),
        ("read_bytes", np.int64),
        ("written_bytes", np.int64),
        ("read_end_bytes", np.int64),  # highest byte read + 1; 0 if none
        ("written_end_bytes", np.int64),
        ("mmaps", np.int64),
        ("read_s", np.float64),  # cumulative, over all ranks for rank -1
        ("write_s", np.float64),
        ("meta_s", np.float64),
        ("open_start_s", np.float64),  # of the first open; timestamps are 0 or less where there was none
        ("read_start_s", np.float64),
        ("read_end_s", np.float64),
        ("write_start_s", np.float64),
        ("write_end_s", np.float64),
        ("close_end_s", np.float64),  # of the last close
    ]
)
"""What one rank did to one file by POSIX or by STDIO. MPI-IO and HDF5 count the same bytes again."""

SEGMENT = np.dtype(
    [
        ("record", np.uint64),
        ("rank", np.int64),
        ("write", np.bool_),  # else read
        ("offset", np.int64),
        ("bytes", np.int64),
        ("start_s", np.float64),
        ("end_s", np.float64),
    ]
)
"""One traced call (DXT), times in seconds after the start of the job."""


class Heat(msgspec.Struct, frozen=True):
    """What one rank moved by one interface, by slices of time from the start of the job (HEATMAP)."""

    module: str
    """`POSIX`, `STDIO` or `MPI-IO`."""
    rank: int
    width_s: float
    """Of a slice."""
    written: NDArray[np.int64]
    """Bytes by slice; a call that lasts longer is spread over several."""
    read: NDArray[np.int64]


class DarshanMount(msgspec.Struct, frozen=True):
    path: str
    kind: str
    """Type of file system, `lustre`."""


class LoggedLayout(msgspec.Struct, frozen=True):
    """Where one file was: the components that had objects when it was last opened."""

    layout: Layout
    osts: tuple[tuple[int, ...], ...]
    """By component; none for one on the MDT (DoM), and where the log has no usable indices."""
    mirrors: int = 1
    """`layout` is the first of them that is not stale."""

    @property
    def known_bytes(self) -> int:
        """The layout of the bytes from 0 to here is known; EOF for all."""
        known = 0
        for component in sorted(self.layout, key=lambda c: c.start_bytes):
            if component.start_bytes > known:
                break
            known = max(known, component.end_bytes)
        return known

    @property
    def placed(self) -> bool:
        """Every component has the OSTs that it must have."""
        return all(len(o) == c.stripe_count for c, o in zip(self.layout, self.osts, strict=True))


class DarshanLog(msgspec.Struct, frozen=True):
    """One job."""

    path: str
    version: str
    """Of the log's format, `3.41`."""
    ranks: int
    uid: int
    job_id: str
    command: tuple[str, ...]
    """Words of the command line; Darshan keeps no quotes."""
    start_s: float
    """Unix time."""
    run_time_s: float
    """0 for a job that did not end."""
    mounts: tuple[DarshanMount, ...]
    """Longest path first."""
    names: dict[int, str]
    """Record id → path without `.`, `..` and `//`; bytes that are no UTF-8 are surrogate escapes."""
    present: dict[str, bool]
    """Every module of the log → whether its records are partial."""
    modules: dict[str, Module]
    """POSIX, STDIO and MPI-IO, as far as present."""
    accesses: NDArray[np.void]
    """Of dtype ACCESS: POSIX and STDIO."""
    layouts: dict[int, LoggedLayout]
    """By record id."""
    gaps: tuple[Gap, ...]

    @property
    def partial(self) -> bool:
        """Records of POSIX or STDIO are missing."""
        return any(self.present.get(name, False) for name in ("POSIX", "STDIO"))

    @property
    def application(self) -> str:
        """Base name of the program."""
        return self.command[0].rstrip("/").rpartition("/")[2] if self.command else ""

    def mount_of(self, name: str) -> DarshanMount | None:
        """The mounted file system that holds `name`."""
        for mount in self.mounts:
            root = mount.path.rstrip("/")
            if name == root or name.startswith(f"{root}/"):
                return mount
        return None

    def gap(self, kind: str) -> Gap | None:
        """The gap of that kind, if the log has it."""
        return next((gap for gap in self.gaps if gap.kind == kind), None)

    def affected(self, kinds: Iterable[str]) -> frozenset[int]:
        """Ids of the records that a gap of one of these kinds is about."""
        chosen = set(kinds)
        return frozenset(record for gap in self.gaps if gap.kind in chosen for record in gap.records)
