"""One run: load and jobs, kills among other faults at random moments, and checks in between."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.chaos.applications import Jobs
from tests.chaos.faults import FAULTS, kill, without
from tests.chaos.invariants import Check, Watch
from tests.chaos.load import Client
from tests.chaos.prober import Prober
from tests.chaos.site import SECOND, Site
from tests.of_parts import brought

READY_S = 60.0
MOST_LINES = 20


class Plan(msgspec.Struct, frozen=True):
    kills: int
    seed: int
    second: bool = True
    """There are two mdsds."""
    only: str = ""
    """Faults whose name contains it, instead of kills."""
    clients: int = 6
    jobs: int = 2
    kills_a_fault: int = 6
    """After so many kills another fault."""
    rounds_a_check: int = 12
    longest_wait_s: float = 1.0
    """Between faults …"""
    longest_lull_s: float = 6.0
    """… which mostly wait as long for clients that are answered."""


class Outcome(msgspec.Struct):
    kills: dict[str, int]
    faults: dict[str, int]
    counts: dict[str, int]
    longest_without_mdsd_s: float
    wrong: list[str]
    without: dict[str, str]
    seconds: float


def rounds(plan: Plan, without: dict[str, str]) -> Iterator[str]:
    """Names of faults, "" for a kill; each other fault in turn, in an order of its own each time."""
    chance = random.Random(f"{plan.seed}-faults")
    possible = [n for n, f in FAULTS.items() if plan.only in n and not set(f.needs) & set(without)]
    left: list[str] = []
    for number in range(1, plan.kills + 1):
        if plan.only:
            if not possible:
                return
        else:
            yield ""
            if number % plan.kills_a_fault or not possible:
                continue
        left = left or chance.sample(possible, len(possible))
        yield left.pop()


def run(plan: Plan, say: Callable[[str], None]) -> Outcome:
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tarazu-chaos-") as directory:
        site = Site(Path(directory), plan.seed, plan.second)
        site.without |= without()
        try:
            return _run(site, plan, say, begin)
        finally:
            site.close()


def _run(site: Site, plan: Plan, say: Callable[[str], None], begin: float) -> Outcome:
    watch = Watch(site)
    prober = Prober(site)
    clients = [Client(site, number, plan.seed) for number in range(plan.clients)]
    jobs = [Jobs(site, number) for number in range(plan.jobs)]
    everybody = [prober, *clients, *jobs]
    check = Check(site, watch, clients, jobs)
    kills: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    wrong: list[str] = []
    done = 0
    chance = random.Random(plan.seed)
    killer = Killer(site, chance)
    besides = [of(plan.seed) for of in brought("chaos", "Beside")]
    try:
        site.start()
        if not watch.ready(READY_S):
            raise RuntimeError(
                f"the daemons were not ready in {READY_S:g} s: {site.log('tarazu-mdsd')[-2000:]}"
            )
        for each in everybody:
            each.start()
        warm_up(clients)
        for name in rounds(plan, site.without):
            # Mostly, what comes next finds clients that are being answered: else there would be no load.
            if chance.random() < 0.85:
                under_load(clients, plan.longest_lull_s)
            time.sleep(chance.uniform(0.0, plan.longest_wait_s))
            site.harmed += 1
            if name:
                say(name)
                FAULTS[name].make(site, chance)
                faults[name] += 1
            else:
                kills[killer()] += 1
            done += 1
            if done % plan.rounds_a_check == 0:
                wrong += _checked(check, say, kills, prober)
                if wrong:
                    # What follows would only tell the same again.
                    break
        if not wrong:
            wrong += _checked(check, say, kills, prober, last=True)
        if wrong:
            keep(site, plan)
    finally:
        longest_s = prober.so_far_s()
        for each in everybody:
            each.end()
        for each in everybody:
            if each.ident:
                each.join(30)
        watch.close()
        ended = [beside.end() for beside in besides]
    wrong += [one for _, wrong_there in ended for one in wrong_there]
    counts = sum((changed for changed, _ in ended), Counter[str]()) + sum(
        (each.counts for each in (*clients, *jobs, check)), Counter()
    )
    return Outcome(
        dict(kills),
        dict(faults),
        dict(counts),
        longest_s,
        wrong,
        site.without,
        time.monotonic() - begin,
    )


def warm_up(clients: Sequence[Client]) -> None:
    """Returns once there is something to lose."""
    deadline = time.monotonic() + READY_S
    while sum(len(c.steps) for c in clients) < 3 * len(clients) and time.monotonic() < deadline:
        time.sleep(0.05)


def under_load(clients: Sequence[Client], longest_s: float) -> None:
    """Returns once some have had an answer that was asked for now, or after a while."""
    before, deadline = sum(c.counts["answers"] for c in clients), time.monotonic() + longest_s
    while sum(c.counts["answers"] for c in clients) < before + 2 and time.monotonic() < deadline:
        time.sleep(0.02)


class Killer:
    """Kills one daemon after another."""

    def __init__(self, site: Site, chance: random.Random) -> None:
        self._site, self._chance = site, chance

    def __call__(self) -> str:
        """What was killed."""
        while True:
            kind = self._chance.choice(("mdsd", "clientd", "ossd"))
            name = self._chance.choice(self._site.names(kind))
            what = self._said(name)
            if kill(self._site, self._chance, name):
                return what

    def _said(self, name: str) -> str:
        kind = name.split("-")[1]
        if kind != "mdsd" or not self._site.second:
            return kind
        return "second mdsd" if name == SECOND else "first mdsd"


def _checked(
    check: Check, say: Callable[[str], None], kills: Counter[str], prober: Prober, last: bool = False
) -> list[str]:
    wrong = check(last)
    verdict = f"{len(wrong)} things wrong" if wrong else "all holds"
    say(f"{kills.total()} kills, at most {prober.so_far_s():.1f} s without an mdsd: {verdict}")
    return wrong


def keep(site: Site, plan: Plan) -> None:
    """Logs of a run in which something did not hold."""
    kept = Path("chaos-output") / str(plan.seed)
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(site.testbed.directory / "log", kept)


def lines(outcome: Outcome) -> Iterator[str]:
    """For people."""
    row: Callable[[str, Any], str] = "{:<44} {}".format
    for kind, number in sorted(outcome.kills.items()):
        yield row(f"kill -9 of {kind}", number)
    for name, number in sorted(outcome.faults.items()):
        yield row(name, number)
    for name, number in sorted(outcome.counts.items()):
        yield row(name, number)
    yield row("longest time without an answering mdsd", f"{outcome.longest_without_mdsd_s:.1f} s")
    yield row("whole run", f"{outcome.seconds:.0f} s")
    for what, why in outcome.without.items():
        if why:
            yield row(f"not done: {what}", why)
    for line in outcome.wrong[:MOST_LINES]:
        yield f"WRONG: {line}"
