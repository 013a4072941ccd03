"""The watch of the site's stop file."""

from __future__ import annotations

import threading

import pytest

from tarazu.store import stop


def test_a_stop_file_that_hangs_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()
    monkeypatch.setattr(stop, "site_stop", lambda _: answers.wait(300.0) and None)
    monkeypatch.setattr(stop, "FIRST_S", 0.05)
    watch = stop.SiteWatch("/site/stop")
    watch.start()
    assert watch.why == ""
    answers.set()
    watch.end()
