"""What the product detects from the requests of the 144 situations, as I/O nodes of the simulator see them:
`python -m tarazu.parts.council.study.detected [FOLDER]`.

Each interval of each I/O node is detected as the council would, from its operations, files, sizes and the features of
its requests, and counted beside the true pattern.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tarazu.errors import TarazuError
from tarazu.parts.council.detect import detect
from tarazu.parts.council.pattern import Pattern
from tarazu.parts.council.study.confusion import Confusion
from tarazu.parts.council.study.requests import situations
from tarazu.parts.council.study.requests.simulate import Setting, simulate
from tarazu.parts.council.study.requests.situation import (
    INTERVAL_S,
    SCALE,
    SITUATIONS,
    WINDOWS,
    WINDOWS_S,
    Situation,
)
from tarazu.sim.study import study
from tarazu.sim.study.case import fingerprint

DETECTED_BY = (
    *(
        f"parts/council/detect/{name}"
        for name in ("classifier.py", "detection.py", "features.py", "spatiality.json")
    ),
    "parts/council/study/detected.py",
)
PART, ENOUGH = 8 * SCALE, 8
"""Each process makes the first 1/PART of its requests, but not fewer than ENOUGH, if the data set's runs have as many:
that shows how they arrive, in a fraction of the time."""


class DetectedRow(msgspec.Struct, frozen=True):
    """One situation with one window."""

    case: Annotated[str, Meta(description="id of the case: hash of all that its result depends on")]
    run: Annotated[int, Meta(description="which row of the case, from 1")]
    runs: Annotated[int, Meta(description="rows of this case")]
    situation: Annotated[int, Meta(description="number in SITUATIONS")]
    seed: Annotated[int, Meta(description="with the rest, which run")]
    window: Annotated[int, Meta(description="number in WINDOWS")]
    found: Annotated[
        tuple[tuple[Pattern, int], ...], Meta(description="pattern that was detected, in how many intervals")
    ]
    nothing: Annotated[int, Meta(description="intervals with I/O in which none was")]


class DetectedCase(situations.SituationCase, frozen=True):
    """One situation with all windows."""


def cases(
    numbers: Iterable[int] = range(len(SITUATIONS)), seed: int = 1, part: int = PART
) -> tuple[DetectedCase, ...]:
    model = fingerprint((*situations.MODEL, *DETECTED_BY))
    return tuple(DetectedCase(number, seed, part, model) for number in numbers)


def rows(case: DetectedCase, progress: Callable[[float, float], object] | None = None) -> list[DetectedRow]:
    """One for each window."""
    made = []
    situation = SITUATIONS[case.situation]
    part = max(min(case.part, situation.phase(1).requests // ENOUGH), min(case.part, SCALE))
    for window, window_s in enumerate(WINDOWS_S):
        outcome = simulate(
            situation,
            Setting("twins", window_s),
            case.seed,
            part=part,
            interval_s=INTERVAL_S,
            features=True,
        )
        seen = Counter(detect(one.observation) for one in outcome.seen if one.observation.bytes)
        nothing = seen.pop(None, 0)
        counts = tuple((pattern, times) for pattern, times in sorted(seen.items()) if pattern)
        made.append(
            DetectedRow(case.id, window + 1, len(WINDOWS), case.situation, case.seed, window, counts, nothing)
        )
        if progress is not None:
            progress(outcome.makespan_s, (window + 1) / len(WINDOWS))
    return made


def run(
    folder: Path,
    numbers: Sequence[int] = range(len(SITUATIONS)),
    seed: int = 1,
    part: int = PART,
    jobs: int = 0,
) -> study.Answers[DetectedRow]:
    """Compute what `folder` has no rows of yet (`rows.jsonl`). Raises BadInput, Unavailable."""
    asked = msgspec.json.format(msgspec.json.encode({"seed": seed, "part": part})).decode() + "\n"
    return study.answers(cases(numbers, seed, part), DetectedRow, folder, ("study.json", asked), jobs=jobs)


def spatiality(
    found: Iterable[DetectedRow], matters: Callable[[Situation], bool] = lambda _: True
) -> Confusion:
    """Of the situations that matter, by interval; those that show nothing are left out."""
    return _confusion(found, matters, lambda pattern: pattern.spatiality)


def patterns(
    found: Iterable[DetectedRow], matters: Callable[[Situation], bool] = lambda _: True
) -> Confusion:
    """Of the whole pattern, which is what a bandit is kept for."""
    return _confusion(found, matters, lambda pattern: pattern)


def _confusion(
    found: Iterable[DetectedRow], matters: Callable[[Situation], bool], of: Callable[[Pattern], object]
) -> Confusion:
    counts: Counter[tuple[object, object]] = Counter()
    for row in found:
        situation = SITUATIONS[row.situation]
        if matters(situation):
            for pattern, times in row.found:
                counts[of(situation.pattern), of(pattern)] += times
    return Confusion(counts)


def table(found: Iterable[DetectedRow]) -> str:
    """A line for each situation."""
    rows_of: dict[int, list[DetectedRow]] = {}
    for row in found:
        rows_of.setdefault(row.situation, []).append(row)
    lines = [f"{'':48}{'intervals':>10}{'spatiality':>12}{'pattern':>10}{'nothing':>10}"]
    for number, of in rows_of.items():
        right, nothing = spatiality(of), sum(row.nothing for row in of)
        lines.append(
            f"{SITUATIONS[number]!s:48}{right.total + nothing:>10}{right.accuracy:>12.1%}"
            f"{patterns(of).accuracy:>10.1%}{nothing / max(1, right.total + nothing):>10.1%}"
        )
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tarazu.parts.council.study.detected",
        description="How often the pattern of an interval is detected rightly, situation by situation: some three "
        "minutes on two cores.",
        epilog="example: python -m tarazu.parts.council.study.detected /tmp/detected",
    )
    parser.add_argument("folder", type=Path, nargs="?", help="where rows are kept, so that it goes on there")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="processes (default: one a core)")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        try:
            answers = run(options.folder or Path(folder), jobs=options.jobs)
        except TarazuError as error:
            print(f"{parser.prog}: {error}", file=sys.stderr)
            return 1
    print(f"{table(answers.rows)}\n\n{spatiality(answers.rows)}")
    for lost in answers.lost:
        print(f"no result: {lost}", file=sys.stderr)
    return 1 if answers.lost else 0


if __name__ == "__main__":
    # Other processes know its classes by that name.
    sys.exit(import_module("tarazu.parts.council.study.detected").main())
