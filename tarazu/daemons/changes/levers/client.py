"""Levers of a client: `max_rpcs_in_flight`, `max_pages_per_rpc` of its OSCs, `max_read_ahead_mb` and the thresholds of
`hybrid_io` of its mounts (`tarazu.tune.levers.client`).

An MDS has OSCs too, its MDTs' (`…-osc-MDT0000`), which take other ranges: only those of mounts are named, each by its
own name. Raising RPCs in flight or their size makes Lustre raise `max_dirty_mb` to what fits into them, to an eighth of
the memory at most, and nothing lowers it again (obd.h, client_adjust_max_dirty): what would raise it is not set.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tarazu.changes.change import Part
from tarazu.daemons.changes.lctl import Lctl, commands_of
from tarazu.daemons.changes.levers.listed import ListedLever
from tarazu.errors import Unavailable
from tarazu.stats import reading
from tarazu.tune.levers import files
from tarazu.tune.levers.client import HYBRID, ClientParameter
from tarazu.units import KIB, MIB


class ClientLever(ListedLever):
    def __init__(self, kind: ClientParameter, values: Collection[str], lctl: Lctl, root: str | Path) -> None:
        super().__init__(kind.parameter, values, lctl, root)
        self.kind = kind

    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        names = (
            f"{self.kind.device}.{device}.{self.name}"
            for device in files.devices(self.root, self.kind.device)
            if self.kind.named.fullmatch(device)
        )
        found = ((name, files.find(self.root, name)) for name in names)
        return tuple(Part(name, file.text.strip()[:80], file.of) for name, file in found if file)

    def may_change(self, target: str, parts: Sequence[Part]) -> None:
        super().may_change(target, parts)
        for part in parts:
            if not part.value.isdecimal():
                raise Unavailable(f"{part.name}: expected a number, found {part.value!r}")
            if self.name in HYBRID and (on := self._read(part.name.split(".")[1], "hybrid_io")) != "1":
                raise Unavailable(
                    f"{part.name}: expected hybrid_io 1, without which it does nothing, found {on}"
                )
            if self.name == "max_pages_per_rpc":
                # From 2.17.5 on reads and writes have sizes of their own, which this parameter would make the same.
                device = part.name.split(".")[1]
                read, write = (self._read(device, f"max_mb_per_rpc_{which}") for which in ("read", "write"))
                if read != write:
                    raise Unavailable(f"osc.{device}: max_mb_per_rpc_read {read}, write {write}: left alone")

    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        if self.kind.device == "osc":
            for name, value in wanted.items():
                self._fits(name.split(".")[1], value)
        self.lctl.set_all(list(wanted.items()))

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        return commands_of(wanted.items())

    def _read(self, device: str, parameter: str) -> str | None:
        text = files.read(self.root, f"{self.kind.device}.{device}.{parameter}")
        return None if text is None else text.strip()[:80]

    def _fits(self, device: str, value: str) -> None:
        names = ("max_rpcs_in_flight", "max_pages_per_rpc", "max_dirty_mb")
        texts = [value if each == self.name else self._read(device, each) for each in names]
        if not all(text and text.isdecimal() for text in texts):
            raise Unavailable(f"osc.{device}: expected {', '.join(names)} to be numbers, found {texts}")
        rpcs, pages, dirty_mb = (int(text or 0) for text in texts)
        if dirty_mb * MIB < self._memory() // 8 and rpcs * pages * os.sysconf("SC_PAGESIZE") > dirty_mb * MIB:
            where = (
                f"osc.{device}.{self.name}: expected RPCs in flight that fit into max_dirty_mb ({dirty_mb})"
            )
            raise Unavailable(f"{where}, found {rpcs} of {pages} pages")

    def _memory(self) -> int:
        """Bytes of this node."""
        try:
            return int(reading.text(Path(self.root) / "proc/meminfo").split()[1]) * KIB  # MemTotal: N kB
        except (OSError, ValueError, IndexError):
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
