"""Parameters of a client: `max_rpcs_in_flight`, `max_pages_per_rpc` of its OSCs, `max_read_ahead_mb` of its mounts.

An MDS has OSCs too, its MDTs' (`…-osc-MDT0000`), which take other ranges: only those of mounts are named.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tarazu.errors import BadInput

_OSC = re.compile(r".+-OST[0-9a-fA-F]{4,8}-osc-[0-9a-fA-F]{8,16}")
_LLITE = re.compile(r".+-[0-9a-fA-F]{8,16}")


class ClientParameter(NamedTuple):
    parameter: str
    device: str
    named: re.Pattern[str]
    values: tuple[str, ...]
    most: int

    def parse(self, value: str) -> str:
        """A value that a site lists. Raises BadInput."""
        if not re.fullmatch(r"[0-9]{1,7}", value) or not 0 < int(value) <= self.most:
            raise BadInput(f"tune.levers: {self.parameter}", f"a whole number from 1 to {self.most}", value)
        return str(int(value))


KINDS = {
    kind.parameter: kind
    for kind in (
        ClientParameter("max_rpcs_in_flight", "osc", _OSC, ("4", "8", "16", "32"), 256),
        ClientParameter("max_pages_per_rpc", "osc", _OSC, ("256", "1024", "4096"), 16384),
        ClientParameter("max_read_ahead_mb", "llite", _LLITE, ("64", "256", "1024"), 1 << 20),
    )
}
