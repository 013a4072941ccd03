"""The parts in a leader: each beside the program in a thread of its own, and at its end."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tarazu.part import InStep, Live, StepFacts
from tarazu.run.plan.reports import TELL_S, StepReports
from tarazu.run.problems import Problems
from tarazu.wire import local
from tarazu.wire.channel import connect


class StepParts:
    """Of one step."""

    def __init__(self, facts: Callable[[str], StepFacts], problems: Problems) -> None:
        """`facts`: for the part of this name."""
        self._live: Live[InStep] = Live(lambda part: part.in_step(facts(part.name)))
        self._problems = problems
        self._say_failures()

    def during(self) -> None:
        """Begin, each in a thread that nobody waits for."""
        for name in self._live:
            self._problems.in_background(self._during, name)

    def _during(self, name: str) -> None:
        self._live.call(name, lambda part: part.during())
        self._say_failures()

    def end(self) -> None:
        """The program has ended."""
        self._live.each(lambda part: part.end())

    def _say_failures(self) -> None:
        for name, why in self._live.failed.items():
            self._problems.note(f"part {name}: {why}")


def tell(socket: str, reports: StepReports, over: threading.Event, message: local.PartTold) -> None:
    """clientd, for a part of mdsd; once the program has ended, in the time of the last reports. Raises TarazuError."""
    if over.is_set():
        reports.part_told(message)
        return
    with connect(socket, TELL_S, deadline_s=TELL_S) as channel:
        channel.ask(message)
