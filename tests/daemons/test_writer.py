"""What is written beside a daemon's loop."""

from __future__ import annotations

import threading

from tarazu.daemons.writer import Writer
from tarazu.errors import StoreError


def test_a_disk_that_is_slow_or_full_holds_nobody_up() -> None:
    writer, go, written = Writer(), threading.Event(), []

    def slow(data: bytes) -> None:
        go.wait(120.0)
        written.append(data)

    def full(data: bytes) -> None:
        raise StoreError("/k", "a directory that can be written", "No space left on device")

    for n in range(100):
        writer.write(slow, lambda n=n: b"%d" % n)
    go.set()
    writer.close()
    assert written[-1] == b"99" and len(written) <= 2 and writer.trouble == ""
    writer = Writer()
    writer.write(full, lambda: b"")
    writer.write(written.append, lambda: b"beside")
    writer.close()
    assert "No space left" in writer.trouble and written[-1] == b"beside"


def test_a_mistake_in_one_text_does_not_end_all_writing() -> None:
    writer, done = Writer(), threading.Event()

    def wrong() -> bytes:
        done.set()
        raise OverflowError("no number of JSON")

    written: list[bytes] = []
    writer.write(lambda _: None, wrong)
    assert done.wait(120.0)
    writer.write(written.append, lambda: b"next")
    writer.close()
    assert written == [b"next"] and "no number of JSON" in writer.trouble
