"""Asks all who tell why files were not placed: `job show`, `job explain`, the job's line, `history report`, metrics."""

from __future__ import annotations

import time
import urllib.request
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.loop.conftest import Loop

PATIENCE_S = 300.0


def last_line(loop: Loop, app: str) -> str:
    """Of the application, in jobs.log."""
    lines = (loop.home / "jobs.log").read_text().splitlines()
    return [line for line in lines if f" app={app} " in line][-1]


class Counted:
    """clientd's count of files not placed, by reason."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/metrics"

    def of(self, word: str) -> int:
        with urllib.request.urlopen(self._url, timeout=PATIENCE_S) as answer:
            lines = answer.read().decode().splitlines()
        start = f'tarazu_clientd_files_not_placed_total{{reason="{word}"}} '
        return next(int(float(line.removeprefix(start))) for line in lines if line.startswith(start))

    def wait(self, word: str, count: int, *, twice: bool = False) -> None:
        """`twice`: a clientd that stood still may get a report as it was sent, and once more from a later step."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.of(word)) < count:
            assert time.monotonic() < deadline, (word, found, count)
            time.sleep(0.05)
        assert found == count or (twice and found == count + 1), word


def everybody_says(loop: Loop, app: str, why: str, *, files: int, of: int, path: Path) -> None:
    """Of the newest run of an application that created `of` files, and of one of them: this is why."""
    line = last_line(loop, app)
    assert f" left={files} why=" in line and why in line, line
    shown = loop.tarazu("job", "show", app).stdout
    assert why in shown and (of == 0 or f"{files} of {of} file" in shown or of == 1), shown
    explained = loop.tarazu("job", "explain", path).stdout
    assert why in next((line for line in explained.splitlines() if " not placed: " in line), ""), explained
    reported = loop.tarazu("history", "report", "--since", "1h", "--application", app).stdout
    assert why in reported, reported
