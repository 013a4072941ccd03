"""Levers of a client: `max_rpcs_in_flight`, `max_pages_per_rpc` of its OSCs or both at once (`osc_rpcs`), of its mounts
`max_read_ahead_mb` and, since 2.16, `hybrid_io_read_threshold_bytes` and `hybrid_io_write_threshold_bytes`: buffered
calls of so many bytes go directly to the servers (`llite/file.c`, ll_hybrid_bio_dio_switch_check), where `hybrid_io` is
on. `osc_rpcs` is `16x128`: 16 pages in an RPC, 128 RPCs in flight. One alone often gains nothing: more RPCs in flight
help where calls come in more RPCs than before (docs/tuning-study.md).

An MDS has OSCs too, its MDTs' (`…-osc-MDT0000`), which take other ranges: only those of mounts are named, each by its
own name. Raising RPCs in flight or their size makes Lustre raise `max_dirty_mb` to what fits into them, to an eighth of
the memory at most, and nothing lowers it again (obd.h, client_adjust_max_dirty): what would raise it is not set.

What Lustre takes, read in its source (2.12.9, 2.15.7, 2.16.1, 2.17.0 and 2.17.57): RPCs in flight 1 to 256
(OSC_MAX_RIF_MAX); pages up to the server's `brw_size`, rounded up to what the target allots at once (`grant_block_size`
of `osc.*.import`: 4 KiB with ldiskfs, more with ZFS); after 2.17.0 at least 64 KiB (lprocfs_status.c, max_rpc_store).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tarazu.errors import BadInput, Unavailable
from tarazu.parts.changes import files
from tarazu.parts.changes.lctl import Lctl, commands_of
from tarazu.parts.changes.model.change import Part
from tarazu.parts.council.levers.listed import ListedLever
from tarazu.stats import reading
from tarazu.units import KIB, MIB

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


class ClientLever(ListedLever):
    def __init__(self, kind: ClientParameter, values: Collection[str], lctl: Lctl, root: str | Path) -> None:
        super().__init__(kind.parameter, values, lctl, root)
        self.kind = kind

    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        names = (
            f"{self.kind.device}.{device}.{parameter}"
            for device in files.devices(self.root, self.kind.device)
            if self.kind.named.fullmatch(device)
            for parameter in self._parameters
        )
        found = ((name, files.find(self.root, name)) for name in names)
        return tuple(
            Part(name, self._text(name, file.text.strip()[:80]), file.of) for name, file in found if file
        )

    @property
    def _parameters(self) -> tuple[str, ...]:
        return (PAGES, RPCS) if self.name == PAIR else (self.name,)

    def _text(self, name: str, value: str) -> str:
        """Of a pair its half: `16x` are pages, `x128` RPCs in flight."""
        return value if self.name != PAIR else f"{value}x" if name.endswith(PAGES) else f"x{value}"

    def _value(self, name: str, text: str) -> str:
        """Lustre's, of a value or its half."""
        pages, _, rpcs = text.partition("x")
        return pages if self.name != PAIR or name.endswith(PAGES) else rpcs

    def same(self, value: str, step: str) -> bool:
        """A half is so where the pair has it."""
        return value == step or (self.name == PAIR and (step.startswith(value) or step.endswith(value)))

    def shown(self, parts: Sequence[Part]) -> str:
        texts = list(dict.fromkeys(part.value for part in parts))
        if self.name == PAIR and len(texts) == 2:
            return "".join(texts).replace("xx", "x")
        return ", ".join(texts)

    def may_change(self, target: str, parts: Sequence[Part]) -> None:
        super().may_change(target, parts)
        for part in parts:
            value = self._value(part.name, part.value)
            if not value.isdecimal():
                raise Unavailable(f"{part.name}: expected a number, found {value!r}")
            if self.name in HYBRID and (on := self._read(part.name.split(".")[1], "hybrid_io")) != "1":
                raise Unavailable(
                    f"{part.name}: expected hybrid_io 1, without which it does nothing, found {on}"
                )
            if part.name.endswith(PAGES):
                # From 2.17.5 on reads and writes have sizes of their own, which this parameter would make the same.
                device = part.name.split(".")[1]
                read, write = (self._read(device, f"max_mb_per_rpc_{which}") for which in ("read", "write"))
                if read != write:
                    raise Unavailable(f"osc.{device}: max_mb_per_rpc_read {read}, write {write}: left alone")

    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        settings = self._settings(wanted)
        if self.kind.device == "osc":
            by_device: dict[str, dict[str, str]] = {}
            for name, value in settings:
                _, device, parameter = name.split(".")
                by_device.setdefault(device, {})[parameter] = value
            for device, values in by_device.items():
                self._fits(device, values)
        self.lctl.set_all(settings)

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        return commands_of(self._settings(wanted))

    def _settings(self, wanted: Mapping[str, str]) -> list[tuple[str, str]]:
        """What becomes less comes first, so that between two settings no more is in flight than before or after."""
        settings = [(name, self._value(name, text)) for name, text in wanted.items()]

        def becomes_more(setting: tuple[str, str]) -> bool:
            now = self._read(*setting[0].split(".")[1:])
            return bool(now and now.isdecimal() and int(setting[1]) > int(now))

        return sorted(settings, key=becomes_more) if self.name == PAIR else settings

    def _read(self, device: str, parameter: str) -> str | None:
        text = files.read(self.root, f"{self.kind.device}.{device}.{parameter}")
        return None if text is None else text.strip()[:80]

    def _fits(self, device: str, values: Mapping[str, str]) -> None:
        """These of a device."""
        names = (RPCS, PAGES, "max_dirty_mb")
        now = {each: values.get(each) or self._read(device, each) for each in names}
        if not all(text and text.isdecimal() for text in now.values()):
            raise Unavailable(f"osc.{device}: expected {', '.join(names)} to be numbers, found {now}")
        rpcs, pages, dirty_mb = (int(text or 0) for text in now.values())
        page = os.sysconf("SC_PAGESIZE")
        if dirty_mb * MIB < self._memory() // 8 and rpcs * pages * page > dirty_mb * MIB:
            where = (
                f"osc.{device}.{self.name}: expected RPCs in flight that fit into max_dirty_mb ({dirty_mb})"
            )
            raise Unavailable(f"{where}, found {rpcs} of {pages} pages")
        if PAGES in values:
            self._is_whole(device, pages, page)

    def _is_whole(self, device: str, pages: int, page: int) -> None:
        """Lustre rounds an RPC up to what its target allots at once, which would not be as set; after 2.17.0, where
        reads and writes have sizes of their own, it refuses less than 64 KiB.
        """
        try:
            text = files.read(self.root, f"osc.{device}.import") or ""
        except Unavailable:
            text = ""
        block = re.search(r"grant_block_size: ([0-9]{1,9})$", text, re.MULTILINE)
        if block and pages * page % max(int(block[1]), 1):
            raise BadInput(
                f"osc.{device}.{PAGES}", f"a multiple of {int(block[1]) // page} pages here", pages
            )
        if pages * page < 64 * KIB and self._read(device, "max_mb_per_rpc_read") is not None:
            raise BadInput(f"osc.{device}.{PAGES}", f"at least {64 * KIB // page} pages here", pages)

    def _memory(self) -> int:
        """Bytes of this node."""
        try:
            return int(reading.text(Path(self.root) / "proc/meminfo").split()[1]) * KIB  # MemTotal: N kB
        except (OSError, ValueError, IndexError):
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
