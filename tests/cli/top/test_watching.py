"""Asking goes on, whatever the answers are."""

from __future__ import annotations

import threading

from tarazu.cli.top.watching import Watching
from tarazu.errors import Unavailable
from tarazu.wire.overview import Overview

GOOD = Overview(1.0, (), ())


def test_an_answer_that_is_none_is_said_and_the_next_one_is_asked_for() -> None:
    answers = iter((KeyError("mdsd"), Unavailable("silent"), GOOD))
    seen: list[tuple[str, Overview | None]] = []
    over = threading.Event()

    def ask() -> Overview:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def changed() -> None:
        seen.append((watching.problem, watching.newest))
        if watching.newest:
            watching.end()
            over.set()

    watching = Watching(ask, 0.01, changed)
    watching.start()
    assert over.wait(300)
    assert seen == [("an invalid answer: KeyError('mdsd')", None), ("silent", None), ("", GOOD)]
