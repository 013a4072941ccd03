"""Whose silence is whose: mdsd's own loop on a clock that the test turns."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu import config
from tarazu.daemons.mdsd.service import Mdsd
from tarazu.daemons.service import Wakeup

WAIT_S = 0.2


class Turned:
    """An mdsd with one step's promise, which has to give a sign of life every four seconds."""

    def __init__(self, directory: Path, wakeup: Wakeup) -> None:
        self.passed_s = time.monotonic()
        fields = {"statistics": "tcp://127.0.0.1:*", "requests": "tcp://127.0.0.1:*", "audit_log": ""}
        settings = config.override(config.Settings(), "mdsd", **fields)
        settings = config.override(settings, "keys", insecure=True)
        settings = config.override(settings, "state", directory=str(directory))
        self.mdsd = Mdsd(settings, wakeup, monotonic=lambda: self.passed_s)
        self.mdsd.book.ledger.promise("step", "lustre", math.inf, [{0: 100}], alive_s=4.0, now=self.passed_s)
        self.turns(1.0)

    def turns(self, seconds: float) -> None:
        """It listens for so long."""
        for _ in range(round(seconds / WAIT_S)):
            self.turn(WAIT_S)

    def turn(self, took_s: float) -> None:
        """A wait that was to last `WAIT_S`."""
        self.passed_s += took_s
        self.mdsd.waited_s = WAIT_S
        self.mdsd.turn(self.passed_s)


@pytest.fixture
def turned(tmp_path: Path) -> Iterator[Turned]:
    with Wakeup() as wakeup:
        made = Turned(tmp_path, wakeup)
        with contextlib.closing(made.mdsd):
            yield made


def test_a_step_that_says_nothing_for_its_time_is_dead(turned: Turned) -> None:
    turned.turns(2.0)
    assert turned.mdsd.dead_steps == 0
    turned.turns(3.0)
    assert turned.mdsd.dead_steps == 1


def test_a_suspended_mdsd_takes_nobody_for_dead(turned: Turned) -> None:
    turned.turn(60.0)
    turned.turns(1.0)
    assert turned.mdsd.dead_steps == 0
    turned.mdsd._hear("step")
    turned.turns(3.6)
    assert turned.mdsd.dead_steps == 0
    turned.turns(2.0)
    assert turned.mdsd.dead_steps == 1


def test_short_pauses_of_mdsd_are_no_silence_of_a_step(turned: Turned) -> None:
    for _ in range(12):  # a node without a free processor: each pause is shorter than a second
        turned.turn(0.9)
    assert turned.mdsd.dead_steps == 0
