"""The part in mdsd: what it knows of MDTs, for `tarazu status`, top, the page, Prometheus, and `tarazu change mdt`."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import TYPE_CHECKING, Any

import msgspec

from tarazu import config
from tarazu.figures import Family
from tarazu.part import InMdsd, MdsdFacts, Reported
from tarazu.parts.mdt.connections import Connections
from tarazu.parts.mdt.messages import MdtReports
from tarazu.parts.mdt.model import Mdt
from tarazu.parts.mdt.targets import target
from tarazu.parts.mdt.view import MdtDetails, MdtViews
from tarazu.stats.params import mdt_name

if TYPE_CHECKING:
    from tarazu.stats.osp import Target

log = logging.getLogger("tarazu.mdt")

_OF_MDT = (
    ("size_bytes", "Capacity of the MDT."),
    ("available_bytes", "Space left, as the MDT reports it."),
    ("files", "Inodes."),
    ("files_free", "Inodes left."),
    ("usable", "1 while directories may be made there."),
    ("operations_per_second", "Metadata operations in its server's last interval; absent while unknown."),
    ("creates_per_second", "Files and directories made in that interval; absent while unknown."),
    ("create_seconds", "Mean time of making one on the server; absent without any."),
    ("relative_speed_ratio", "Speed beside MDTs at like load; absent while unknown."),
)
LABELS = ("component", "target", "fs")


class InMdsdMdt(InMdsd):
    reports = MdtReports

    def __init__(self, mdsd: MdsdFacts) -> None:
        self.views = MdtViews()
        self.impossible: dict[str, tuple[str, ...]] = {}
        """Server → MDTs of its newest report that were left out."""
        self._stale_after_s = mdsd.settings.mdsd.stale_after_s
        self._connections = Connections(config.root())
        self._away: Mapping[Target, str] = {}

    def reported(self, said: MdtReports, of: Reported) -> None:
        permitted = tuple(mdt for mdt in said.mdts if of.may(mdt_name(mdt.fs_name, mdt.index)))
        own, server = msgspec.structs.replace(said, mdts=permitted), of.server
        amiss = tuple(self.views.update(server, own, of.received_s, of.seconds))
        for name in set(amiss) - set(self.impossible.get(server, ())):
            log.warning("%s: %s is left out: it reports impossible values", server, name)
        if amiss:
            self.impossible[server] = amiss
        else:
            self.impossible.pop(server, None)

    def request_s(self, fs_name: str) -> float | None:
        """As the MDTs' own counts have it (`md_stats`)."""
        known = [
            mdt.create_s
            for mdt in self.view(fs_name, time.monotonic())
            if mdt.usable and mdt.create_s is not None
        ]
        return fmean(known) if known else None

    def look(self) -> None:
        self._away = self._connections.look()

    def excuse(self, paused_s: float) -> None:
        self.views.excuse(paused_s)

    def take_over(self, settings: config.Settings) -> None:
        self._stale_after_s = settings.mdsd.stale_after_s

    def view(self, fs_name: str, now: float) -> tuple[Mdt, ...]:
        """MDTs as their servers report them, and as the other MDTs of this node see them."""
        away = self._away
        return tuple(
            msgspec.structs.replace(mdt, active=False, health=why)
            if (why := away.get((fs_name, mdt.index), ""))
            else mdt
            for mdt in self.views.view(fs_name, now, self._stale_after_s)
        )

    def details(self, fs_name: str, now: float) -> dict[int, MdtDetails]:
        return self.views.details(fs_name, now, self._stale_after_s)

    def status(self, now: float) -> dict[str, Any]:
        known: dict[str, list[dict[str, Any]]] = {}
        targets = []
        for fs_name in self.views.fs_names():
            details = self.details(fs_name, now)
            for mdt in self.view(fs_name, now):
                of = details[mdt.index]
                operations = None
                if of.operations is not None:
                    operations = {
                        n: {"per_s": rate, "seconds": mean} for n, (rate, mean) in of.operations.items()
                    }
                row = {
                    **{f: getattr(mdt, f) for f in mdt.__struct_fields__},
                    "usable": mdt.usable,
                    "operations": operations,
                    "jobs": [{"job_id": job, "operations_per_s": rate} for job, rate in of.jobs],
                }
                known.setdefault(fs_name, []).append(row)
                targets.append(msgspec.to_builtins(target(fs_name, mdt, of)))
        return {"targets": targets, "file_systems": known, "impossible": dict(self.impossible)}

    def families(self) -> Iterator[Family]:
        now, names = time.monotonic(), self.views.fs_names()
        of_mdt = {name: Family("gauge", f"mdt_{name}", text, LABELS) for name, text in _OF_MDT}
        rates = Family(
            "gauge",
            "mdt_operation_rate",
            "Operations of each kind per second in that interval, as `md_stats` names them.",
            (*LABELS, "operation"),
        )
        seconds = Family(
            "gauge",
            "mdt_operation_seconds",
            "Mean time of one on the server; absent where the server does not time them.",
            (*LABELS, "operation"),
        )
        for fs_name in names:
            of_fs = self.details(fs_name, now)
            for mdt in self.view(fs_name, now):
                labels = ("mdt", mdt_name(fs_name, mdt.index), fs_name)
                operations = of_fs[mdt.index].operations if mdt.index in of_fs else None
                for name, value in _of_mdt(mdt, known=operations is not None):
                    of_mdt[name].samples[labels] = value
                for name, (per_s, mean_s) in (operations or {}).items():
                    rates.samples[*labels, name] = per_s
                    if mean_s is not None:
                        seconds.samples[*labels, name] = mean_s
        if names:
            yield from of_mdt.values()
            yield rates
            yield seconds


def _of_mdt(mdt: Mdt, *, known: bool) -> Iterator[tuple[str, float]]:
    yield "size_bytes", mdt.total_bytes
    yield "available_bytes", mdt.avail_bytes
    yield "files", mdt.files_total
    yield "files_free", mdt.files_free
    yield "usable", mdt.usable
    if known:
        yield "operations_per_second", mdt.operations_per_s
        yield "creates_per_second", mdt.creates_per_s
    if mdt.create_s is not None:
        yield "create_seconds", mdt.create_s
    if mdt.relative_speed is not None:
        yield "relative_speed_ratio", mdt.relative_speed
