"""Parameters of a client: `max_rpcs_in_flight`, `max_pages_per_rpc` of its OSCs, of its mounts `max_read_ahead_mb` and,
since 2.16, `hybrid_io_read_threshold_bytes` and `hybrid_io_write_threshold_bytes`: buffered calls of so many bytes go
directly to the servers (`llite/file.c`, ll_hybrid_bio_dio_switch_check), where `hybrid_io` is on.

An MDS has OSCs too, its MDTs' (`…-osc-MDT0000`), which take other ranges: only those of mounts are named.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tarazu.errors import BadInput
from tarazu.units import MIB

_OSC = re.compile(r".+-OST[0-9a-fA-F]{4,8}-osc-[0-9a-fA-F]{8,16}")
_LLITE = re.compile(r".+-[0-9a-fA-F]{8,16}")


def _bytes(*sizes_mib: int) -> tuple[str, ...]:
    return tuple(str(size * MIB) for size in sizes_mib)


class ClientParameter(NamedTuple):
    parameter: str
    device: str
    named: re.Pattern[str]
    values: tuple[str, ...]
    most: int

    def parse(self, value: str) -> str:
        """A value that a site lists. Raises BadInput."""
        if not re.fullmatch(r"[0-9]{1,10}", value) or not 0 < int(value) <= self.most:
            raise BadInput(f"tune.levers: {self.parameter}", f"a whole number from 1 to {self.most}", value)
        return str(int(value))


HYBRID = ("hybrid_io_read_threshold_bytes", "hybrid_io_write_threshold_bytes")
"""Without effect where `hybrid_io` is 0, as it is in 2.16 unless somebody sets it."""
_MOST_BYTES = 2 << 30
"""HYBRID_IO_THRESHOLD_BYTES_MAX (lproc_llite.c): as good as never, for calls are mostly smaller."""
KINDS = {
    kind.parameter: kind
    for kind in (
        ClientParameter("max_rpcs_in_flight", "osc", _OSC, ("4", "8", "16", "32"), 256),
        ClientParameter("max_pages_per_rpc", "osc", _OSC, ("256", "1024", "4096"), 16384),
        ClientParameter("max_read_ahead_mb", "llite", _LLITE, ("64", "256", "1024"), 1 << 20),
        ClientParameter(HYBRID[0], "llite", _LLITE, _bytes(2, 8, 32, 2048), _MOST_BYTES),
        ClientParameter(HYBRID[1], "llite", _LLITE, _bytes(1, 2, 8, 2048), _MOST_BYTES),
    )
}
