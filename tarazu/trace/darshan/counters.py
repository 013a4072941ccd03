"""The counters in the records of Darshan's modules: their names, in the order in which they stand in a log."""

from __future__ import annotations

from typing import NamedTuple

_BINS = "0_100 100_1K 1K_10K 10K_100K 100K_1M 1M_4M 4M_10M 10M_100M 100M_1G 1G_PLUS".split()
_RANKS = "FASTEST_RANK FASTEST_RANK_BYTES SLOWEST_RANK SLOWEST_RANK_BYTES".split()
_LONGEST = "MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE".split()
_DIMENSIONS = range(1, 6)
_EDGES = [
    f"F_{call}_{edge}_TIMESTAMP" for edge in ("START", "END") for call in "OPEN READ WRITE CLOSE".split()
]
_SPREAD = "F_FASTEST_RANK_TIME F_SLOWEST_RANK_TIME F_VARIANCE_RANK_TIME F_VARIANCE_RANK_BYTES".split()
_TIMES = [*_EDGES, *"F_READ_TIME F_WRITE_TIME F_META_TIME F_MAX_READ_TIME F_MAX_WRITE_TIME".split(), *_SPREAD]


def _sizes(tail: str = "") -> list[str]:
    return [f"SIZE_{call}{tail}_{size}" for call in ("READ", "WRITE") for size in _BINS]


def _numbered(name: str, *parts: str) -> list[str]:
    """Four of each: `STRIDE1_STRIDE` … `STRIDE4_STRIDE`, then the next part."""
    return [f"{name}{n}_{part}" for part in parts for n in range(1, 5)]


def _shapes() -> list[str]:
    return [
        f"ACCESS{n}_{part}"
        for n in range(1, 5)
        for part in ("ACCESS", *(f"{of}_D{d}" for of in ("LENGTH", "STRIDE") for d in _DIMENSIONS))
    ] + _numbered("ACCESS", "COUNT")


def _pnetcdf_calls() -> list[str]:
    plain, more = ["", "1", "A", "S", "M", "N"], ["D"]
    return [
        f"{call}_VAR{kind}"
        for call in ("PUT", "GET", "IPUT", "IGET", "BPUT")
        for kind in plain + (more if call in ("PUT", "GET") else [])
    ]


class Columns(NamedTuple):
    """Of one module, without its name in front."""

    counters: list[str]
    """8-byte integers."""
    fcounters: list[str]
    """Doubles: seconds."""


_POSIX = [
    *"OPENS FILENOS DUPS READS WRITES SEEKS STATS MMAPS FSYNCS FDSYNCS".split(),
    *"RENAME_SOURCES RENAME_TARGETS RENAMED_FROM MODE".split(),
    *"BYTES_READ BYTES_WRITTEN MAX_BYTE_READ MAX_BYTE_WRITTEN".split(),
    *"CONSEC_READS CONSEC_WRITES SEQ_READS SEQ_WRITES RW_SWITCHES".split(),
    *"MEM_NOT_ALIGNED MEM_ALIGNMENT FILE_NOT_ALIGNED FILE_ALIGNMENT".split(),
    *_LONGEST,
    *_sizes(),
    *_numbered("STRIDE", "STRIDE", "COUNT"),
    *_numbered("ACCESS", "ACCESS", "COUNT"),
    *_RANKS,
]
NEWEST = {
    "POSIX": Columns(_POSIX, _TIMES),
    "STDIO": Columns(
        [
            *"OPENS FDOPENS READS WRITES SEEKS FLUSHES BYTES_WRITTEN BYTES_READ".split(),
            *"MAX_BYTE_READ MAX_BYTE_WRITTEN".split(),
            *_RANKS,
        ],
        [
            *"F_META_TIME F_WRITE_TIME F_READ_TIME".split(),
            *(f"F_{call}_{edge}_TIMESTAMP" for edge in ("START", "END") for call in "OPEN CLOSE WRITE READ".split()),
            *_SPREAD,
        ],
    ),
    "MPI-IO": Columns(
        [
            *"INDEP_OPENS COLL_OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES".split(),
            *"SPLIT_READS SPLIT_WRITES NB_READS NB_WRITES SYNCS HINTS VIEWS MODE".split(),
            *"BYTES_READ BYTES_WRITTEN RW_SWITCHES".split(),
            *_LONGEST,
            *_sizes("_AGG"),
            *_numbered("ACCESS", "ACCESS", "COUNT"),
            *_RANKS,
        ],
        _TIMES,
    ),
    "H5D": Columns(
        [
            *"OPENS READS WRITES FLUSHES BYTES_READ BYTES_WRITTEN RW_SWITCHES".split(),
            *"REGULAR_HYPERSLAB_SELECTS IRREGULAR_HYPERSLAB_SELECTS POINT_SELECTS".split(),
            *_LONGEST,
            *_sizes("_AGG"),
            *_shapes(),
            *"DATASPACE_NDIMS DATASPACE_NPOINTS DATATYPE_SIZE".split(),
            *(f"CHUNK_SIZE_D{d}" for d in _DIMENSIONS),
            *"USE_MPIIO_COLLECTIVE USE_DEPRECATED".split(),
            *_RANKS,
        ],
        _TIMES,
    ),
    "PNETCDF_VAR": Columns(
        [
            *"OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES NB_READS NB_WRITES".split(),
            *"BYTES_READ BYTES_WRITTEN RW_SWITCHES".split(),
            *_pnetcdf_calls(),
            *_LONGEST,
            *_sizes("_AGG"),
            *_shapes(),
            *"NDIMS NPOINTS DATATYPE_SIZE IS_RECORD_VAR".split(),
            *_RANKS,
        ],
        _TIMES,
    ),
}  # fmt: skip
"""As in the newest version of each module."""
VERSION = {"POSIX": 4, "STDIO": 2, "MPI-IO": 3, "H5D": 2, "PNETCDF_VAR": 1, "LUSTRE": 2, "DXT_POSIX": 2,
           "DXT_MPIIO": 3, "HEATMAP": 1}  # fmt: skip
"""The newest of each module that can be read."""
FOPENS = "FOPENS"
_LATE_EDGES = {"F_CLOSE_START_TIMESTAMP", "F_OPEN_END_TIMESTAMP"}
_ADDED = {
    "POSIX": {
        4: {"FILENOS", "DUPS", "RENAME_SOURCES", "RENAME_TARGETS", "RENAMED_FROM"},
        3: _LATE_EDGES,
    },
    "STDIO": {2: {"FDOPENS"}},
    "MPI-IO": {3: _LATE_EDGES},
}
"""Module → version → counters that it added; older records have -1 there, as Darshan's own tools give."""
UNSIGNED = "RENAMED_FROM"
"""A record id, 0 where it is not known."""


def columns(module: str, version: int) -> Columns:
    """Those that stand in records of this version."""
    late = {n for since, names in _ADDED.get(module, {}).items() if version < since for n in names}
    counters = [name for name in NEWEST[module].counters if name not in late]
    if module == "POSIX" and version == 1:
        counters[6:6] = [FOPENS, "FREADS", "FWRITES", "FSEEKS"]
    return Columns(counters, [name for name in NEWEST[module].fcounters if name not in late])
