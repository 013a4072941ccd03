"""Levers of a client: `max_rpcs_in_flight`, `max_pages_per_rpc` of its OSCs, `max_read_ahead_mb` of its mounts.

An MDS has OSCs too, its MDTs' (`…-osc-MDT0000`), which take other ranges: only those of mounts are named, each by its
own name. Raising RPCs in flight or their size makes Lustre raise `max_dirty_mb` to what fits into them, and nothing
lowers it again (obd.h, client_adjust_max_dirty): a value that would do so is not set.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tarazu.errors import BadInput, Unavailable
from tarazu.tune.lever import Before, LeverParameter
from tarazu.tune.levers import files
from tarazu.tune.levers.base import Parameters, Setter
from tarazu.units import MIB

_OSC = re.compile(r".+-OST[0-9a-fA-F]{4,8}-osc-[0-9a-fA-F]{8,16}")
_LLITE = re.compile(r".+-[0-9a-fA-F]{8,16}")
AT_ONCE = 200
"""Parameters in one call of lctl."""


class ClientParameter(NamedTuple):
    parameter: str
    device: str
    named: re.Pattern[str]
    values: tuple[str, ...]
    most: int


KINDS = {
    kind.parameter: kind
    for kind in (
        ClientParameter("max_rpcs_in_flight", "osc", _OSC, ("4", "8", "16", "32"), 256),
        ClientParameter("max_pages_per_rpc", "osc", _OSC, ("256", "1024", "4096"), 16384),
        ClientParameter("max_read_ahead_mb", "llite", _LLITE, ("64", "256", "1024"), 1 << 20),
    )
}


class Tunable(Parameters):
    def __init__(self, kind: ClientParameter, lctl: Setter, root: str | Path) -> None:
        super().__init__(lctl, root)
        self.kind = kind
        self.name = kind.parameter
        self.values = kind.values

    def canonical(self, value: str) -> str:
        if not re.fullmatch(r"[0-9]{1,7}", value) or not 0 < int(value) <= self.kind.most:
            raise BadInput(f"tune.levers: {self.name}", f"a whole number from 1 to {self.kind.most}", value)
        return str(int(value))

    def now(self) -> tuple[LeverParameter, ...]:
        parameters = []
        for device in files.devices(self.root, self.kind.device):
            if self.kind.named.fullmatch(device):
                name = f"{self.kind.device}.{device}.{self.name}"
                if file := files.find(self.root, name):
                    parameters.append(LeverParameter(name, file.text.strip()[:80], file.of))
        return tuple(parameters)

    def _read(self, device: str, parameter: str) -> str | None:
        text = files.read(self.root, f"{self.kind.device}.{device}.{parameter}")
        return None if text is None else text.strip()[:80]

    def before(self) -> Before:
        state = super().before()
        for parameter in state.parameters:
            if not parameter.value.isdecimal():
                raise Unavailable(f"{parameter.name}: expected a number, found {parameter.value!r}")
            if self.name == "max_pages_per_rpc":
                self._one_size(parameter.name.split(".")[1])
        return state

    def _one_size(self, device: str) -> None:
        """From 2.17.5 on reads and writes have sizes of their own, which this parameter would make the same."""
        read, write = (self._read(device, f"max_mb_per_rpc_{which}") for which in ("read", "write"))
        if read != write:
            raise Unavailable(f"osc.{device}: max_mb_per_rpc_read {read}, write {write}: left alone")

    def _fits(self, device: str, value: str) -> None:
        names = ("max_rpcs_in_flight", "max_pages_per_rpc", "max_dirty_mb")
        texts = [value if each == self.name else self._read(device, each) for each in names]
        if not all(text and text.isdecimal() for text in texts):
            raise Unavailable(f"osc.{device}: expected {', '.join(names)} to be numbers, found {texts}")
        rpcs, pages, dirty_mb = (int(text or 0) for text in texts)
        if rpcs * pages * os.sysconf("SC_PAGESIZE") > dirty_mb * MIB:
            raise Unavailable(
                f"osc.{device}.{self.name}: expected RPCs in flight that fit into max_dirty_mb ({dirty_mb}), "
                f"found {rpcs} of {pages} pages"
            )

    def write(self, wanted: Mapping[str, str]) -> None:
        settings = list(wanted.items())
        if self.kind.device == "osc":
            for name, value in settings:
                self._fits(name.split(".")[1], value)
        failed: Exception | None = None
        for first in range(0, len(settings), AT_ONCE):
            try:
                self.lctl.set(settings[first : first + AT_ONCE])
            except (BadInput, Unavailable) as error:
                failed = failed or error
        if failed:
            raise failed
