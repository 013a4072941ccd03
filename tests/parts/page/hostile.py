"""The part's readers of files, from whose valid ones `tests/hostile` makes others."""

from __future__ import annotations

from pathlib import Path

from tarazu.parts.page.results import Results
from tarazu.parts.page.ring import Moment, Ring
from tests.hostile.cases.case import Case


def _ring(directory: Path) -> Path:
    ring = Ring(directory / "ring.db")
    ring.add({"scratch": Moment(600, 0.5, 0.6, 1.1, None, 1e9, 5, 0)})
    ring.close()
    return directory / "ring.db"


def _use_ring(path: Path) -> None:
    ring = Ring(path)
    try:
        for name in ring.names():
            ring.read(name, 60, 0.0)
        ring.add({"scratch": Moment(660, 0.5, 0.6, 1.1, 1.0, 1e9, 5, 0)})
    finally:
        ring.close()


def _results(directory: Path) -> Path:
    path = directory / "report.json"
    path.write_text('{"jobs": [], "since_s": 1.0, "until_s": 2.0}')
    return path


CASES = (
    Case("imbalance over time", ("tarazu.parts.page.ring:Ring._open",), _ring, _use_ring, 100),
    Case(
        "results on the page",
        (
            "tarazu.parts.page.results:Results._bytes",
            "tarazu.parts.page.results:_content",
            "tarazu.parts.page.results:is_trail",
        ),
        _results,
        lambda p: Results(str(p.parent)).all(),
    ),
)
LEFT = {"tarazu.parts.page.document:<module>": "comes with the package"}
