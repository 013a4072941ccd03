"""The part's readers of files, from whose valid ones `tests/hostile` makes others."""

from __future__ import annotations

from pathlib import Path

from tarazu.parts.page.history import History
from tarazu.parts.page.results import Results
from tests.hostile.cases.case import Case
from tests.parts.page import sample


def _history(directory: Path) -> Path:
    kept, overview = History(directory / "history.db"), sample.system(1, 2).overview
    assert overview is not None
    kept.add(sample.NOW_S, overview.targets)
    kept.close()
    return directory / "history.db"


def _use_history(path: Path) -> None:
    kept, overview = History(path), sample.system(1, 2).overview
    assert overview is not None
    try:
        kept.moments("scratch", None, 600, sample.NOW_S - 600, sample.NOW_S)
        kept.add(sample.NOW_S + 60, overview.targets)
    finally:
        kept.close()


def _results(directory: Path) -> Path:
    path = directory / "report.json"
    path.write_text('{"jobs": [], "since_s": 1.0, "until_s": 2.0}')
    return path


CASES = (
    Case("history of the page", ("tarazu.parts.page.history:_opened",), _history, _use_history, 100),
    Case(
        "results on the page",
        ("tarazu.parts.page.results:Results._bytes", "tarazu.parts.page.results:Results._read"),
        _results,
        lambda p: Results(str(p.parent)).all(),
    ),
)
LEFT = {
    "tarazu.parts.page.pages:Pages.__init__": "comes with the package",
    "tarazu.parts.page.pages:Pages._result": "`results on the page`, once they are known to be JSON",
}
