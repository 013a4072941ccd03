"""Parameters of a client: `max_rpcs_in_flight`, `max_pages_per_rpc` of its OSCs, of its mounts `max_read_ahead_mb` and,
since 2.16, `hybrid_io_read_threshold_bytes` and `hybrid_io_write_threshold_bytes`: buffered calls of so many bytes go
directly to the servers (`llite/file.c`, ll_hybrid_bio_dio_switch_check), where `hybrid_io` is on.

`osc_rpcs` is the first two at once, `16x128`: 16 pages in an RPC, 128 RPCs in flight. One alone often gains nothing:
more RPCs in flight help where calls come in more RPCs than before (docs/tuning-study.md).

An MDS has OSCs too, its MDTs' (`…-osc-MDT0000`), which take other ranges: only those of mounts are named.

What Lustre takes, read in its source (2.12.9, 2.15.7, 2.16.1, 2.17.0 and 2.17.57): RPCs in flight 1 to 256
(OSC_MAX_RIF_MAX); pages up to the server's `brw_size`, rounded up to what the target allots at once (`grant_block_size`
of `osc.*.import`: 4 KiB with ldiskfs, more with ZFS); after 2.17.0 at least 64 KiB (lprocfs_status.c, max_rpc_store).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tarazu.errors import BadInput
from tarazu.units import MIB

_OSC = re.compile(r".+-OST[0-9a-fA-F]{4,8}-osc-[0-9a-fA-F]{8,16}")
_LLITE = re.compile(r".+-[0-9a-fA-F]{8,16}")


PAIR = "osc_rpcs"
PAGES, RPCS = "max_pages_per_rpc", "max_rpcs_in_flight"
MOST_PAGES, MOST_RPCS = 16384, 256


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
        if self.parameter == PAIR:
            return str(RpcPair.parse(value))
        if not re.fullmatch(r"[0-9]{1,10}", value) or not 0 < int(value) <= self.most:
            raise BadInput(
                f"part.council.levers: {self.parameter}", f"a whole number from 1 to {self.most}", value
            )
        return str(int(value))


class RpcPair(NamedTuple):
    """Value of `osc_rpcs`."""

    pages: int
    """Most in an RPC, of 4 KiB as a rule."""
    rpcs: int
    """Most in flight to an OST."""

    def __str__(self) -> str:
        return f"{self.pages}x{self.rpcs}"

    @classmethod
    def parse(cls, text: str) -> RpcPair:
        """Raises BadInput."""
        named = re.fullmatch(r"([0-9]{1,5})x([0-9]{1,3})", text)
        pair = cls(int(named[1]), int(named[2])) if named else cls(0, 0)
        if not (0 < pair.pages <= MOST_PAGES and 0 < pair.rpcs <= MOST_RPCS):
            expected = f"pages (1 to {MOST_PAGES}) x RPCs in flight (1 to {MOST_RPCS}), such as 256x16"
            raise BadInput(f"part.council.levers: {PAIR}", expected, text)
        return pair


HYBRID = ("hybrid_io_read_threshold_bytes", "hybrid_io_write_threshold_bytes")
"""Without effect where `hybrid_io` is 0, as it is in 2.16 unless somebody sets it."""
_MOST_BYTES = 2 << 30
"""HYBRID_IO_THRESHOLD_BYTES_MAX (lproc_llite.c): as good as never, for calls are mostly smaller."""
KINDS = {
    kind.parameter: kind
    for kind in (
        ClientParameter(
            PAIR, "osc", _OSC, ("1024x8", "256x8", "256x32", "64x32", "16x128", "8x32", "2x32"), 0
        ),
        ClientParameter(RPCS, "osc", _OSC, ("4", "8", "16", "32", "64", "128"), MOST_RPCS),
        ClientParameter(PAGES, "osc", _OSC, ("16", "64", "256", "1024"), MOST_PAGES),
        ClientParameter("max_read_ahead_mb", "llite", _LLITE, ("64", "256", "1024"), 1 << 20),
        ClientParameter(HYBRID[0], "llite", _LLITE, _bytes(2, 8, 32, 2048), _MOST_BYTES),
        ClientParameter(HYBRID[1], "llite", _LLITE, _bytes(1, 2, 8, 2048), _MOST_BYTES),
    )
}
