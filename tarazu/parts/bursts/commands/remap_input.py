"""What `tarazu change bursts remap` looks at: the machine, its NIDs and the mapping in force, days of traffic."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu import config
from tarazu.errors import BadInput, TarazuError
from tarazu.names import shown
from tarazu.parts.routers import mapping_file
from tarazu.parts.routers.settings import Routers

if TYPE_CHECKING:
    from tarazu.parts.bursts.mapping.offers import Site
    from tarazu.parts.bursts.mapping.rules import Addresses, Known
    from tarazu.parts.bursts.traffic.machine import Machine
    from tarazu.parts.bursts.traffic.traffic import Numbers, Traffic

DAY_S = 86_400.0
SAY_EVERY_S = 2.0


def mode_of_rules(settings: config.Settings) -> str:
    """Of the part that sets rules on servers."""
    return settings.part.of("routers", Routers).mode


def site_of(options: argparse.Namespace, settings: config.Settings) -> Site:
    from tarazu.batch.node_set import unfold
    from tarazu.parts.bursts.burstd import here
    from tarazu.parts.bursts.mapping import hops, offers, rules
    from tarazu.parts.bursts.traffic import machine_file

    machine = machine_file.read(options.machine) if options.machine else here.machine(settings)
    if machine is None:
        raise BadInput("part.bursts.machine", "a file of nodes and routers (or --machine FILE)", "nothing")
    if options.routers:
        machine = _among(machine, unfold(options.routers))
    if not machine.nodes or not machine.io_nodes:
        raise BadInput(
            str(options.machine or "part.bursts.machine"),
            "nodes, and routers that serve them (io_node=NAME, or --routers HOSTS)",
            "none",
        )
    known = _known(options, settings)
    addresses = rules.addresses(machine, known) if known is not None else None
    present = _present(settings, machine, addresses) if addresses else machine.served_by
    return offers.Site(
        machine, present, addresses, hops.read(options.hops, machine) if options.hops else None
    )


def _among(machine: Machine, routers: tuple[str, ...]) -> Machine:
    """The machine with these routers, of which some may serve nobody at present."""
    import numpy as np

    number = {name: n for n, name in enumerate(routers)}
    for name in machine.io_nodes:
        if name not in number:
            raise BadInput("--routers", "those that serve nodes at present among them", f"no {name}")
    new = np.array([*(number[name] for name in machine.io_nodes), -1], np.int32)
    return dataclasses.replace(machine, io_nodes=routers, served_by=new[machine.served_by])


def _known(options: argparse.Namespace, settings: config.Settings) -> Known | None:
    from tarazu.parts.routers import hosts

    setting = settings.part.of("routers", Routers).nids
    if options.nids or setting.startswith("/"):
        return hosts.read(options.nids or Path(setting))
    return None


def _present(settings: config.Settings, machine: Machine, addresses: Addresses) -> Numbers:
    """By the mapping in force, where there is one; else as the machine's file says."""
    from tarazu.parts.bursts.mapping import rules

    try:
        in_force = mapping_file.read(Path(mapping_file.path_of(settings)))
    except TarazuError as error:
        print(shown(f"tarazu change bursts remap: what is in force is not known: {error}"), file=sys.stderr)
        return machine.served_by
    return rules.served_by(in_force.rules, addresses, machine.served_by) if in_force else machine.served_by


class Period:
    """Days to learn from, and days to judge on."""

    def __init__(self, directory: Path, begin_s: float, split_s: float, end_s: float) -> None:
        self.directory, self.begin_s, self.split_s, self.end_s = directory, begin_s, split_s, end_s

    def __str__(self) -> str:
        learned, judged = (
            (b - a) / DAY_S for a, b in ((self.begin_s, self.split_s), (self.split_s, self.end_s))
        )
        return f"learned on {learned:.3g} days, judged on the {judged:.3g} after them"


def traffic(options: argparse.Namespace, settings: config.Settings) -> Path:
    from tarazu.parts.bursts.burstd import here

    return options.traffic or here.traffic(settings)


def period_of(options: argparse.Namespace, settings: config.Settings) -> Period | None:
    from tarazu.parts.bursts.traffic import days

    directory = traffic(options, settings)
    span = days.span(directory) if directory.is_dir() else None
    if span is None:
        return None
    end = min(span[1], time.time())  # a clock that was ahead may have written days to come
    begin = max(span[0], end - options.days * DAY_S)
    held_out = options.held_out * DAY_S if options.held_out else (end - begin) / 3
    return Period(directory, begin, max(begin, end - held_out), end)


def read(directory: Path, begin_s: float, end_s: float, what: str) -> Iterator[Traffic]:
    from tarazu.parts.bursts.traffic import days

    say_so = RemapProgress()
    for chunk in days.read(directory, begin_s, end_s):
        yield chunk
        if len(chunk) and end_s > begin_s:
            say_so(what, (float(chunk.time_s[-1]) - begin_s) / (end_s - begin_s))
    say_so.end()


class RemapProgress:
    """A line on a terminal's standard error, once it takes long."""

    def __init__(self) -> None:
        self._said_at = time.monotonic()
        self._shown = False

    def __call__(self, what: str, share: float) -> None:
        now = time.monotonic()
        if now - self._said_at >= SAY_EVERY_S and sys.stderr.isatty():
            self._said_at, self._shown = now, True
            print(f"\r{what}: {100 * share:.0f} %\033[K", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
