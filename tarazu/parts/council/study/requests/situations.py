"""The study of the 144 situations: each with TWINS' seven windows, with FIFO and with HBRR."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tarazu.malformed import described
from tarazu.parts.council.study.requests.outcome import Setting
from tarazu.parts.council.study.requests.run import simulate
from tarazu.parts.council.study.requests.situation import INTERVAL_S, SCALE, SITUATIONS, WINDOWS, WINDOWS_S
from tarazu.sim.study import study
from tarazu.sim.study.case import Case, fingerprint

MODEL = (
    "sim/kernel/calls.py",
    "parts/council/study/requests",
    "parts/council/pattern.py",
)
"""What computes a row."""
SCHEDULERS = (*WINDOWS, "fifo", "hbrr")
"""The windows first: their numbers are the bandit's actions."""
SHORT_PART = 512
"""To see that it works; nothing follows from so few requests."""


class SituationRow(msgspec.Struct, frozen=True):
    """One run of a situation. The same seed gives the same row, bit for bit."""

    case: Annotated[str, Meta(description="id of the case: hash of all that its result depends on")]
    run: Annotated[int, Meta(description="which row of the case, from 1")]
    runs: Annotated[int, Meta(description="rows of this case")]
    situation: Annotated[int, Meta(description="number in SITUATIONS")]
    seed: Annotated[int, Meta(description="with the rest, which run")]
    scheduler: Annotated[str, Meta(description="fifo, hbrr or a window of TWINS")]
    makespan_s: Annotated[float, Meta(description="as the user sees it")]
    bytes: Annotated[int, Meta(description="that moved")]
    rewards: Annotated[tuple[float, ...], Meta(description="bytes/s of each node and interval with I/O")]
    demands: Annotated[tuple[float, ...], Meta(description="requests queued or in service then, on average")]

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / self.makespan_s


class SituationCase(Case, frozen=True):
    """One situation with all that schedules."""

    situation: int
    seed: int
    part: int
    model: str

    @property
    def label(self) -> str:
        return f"{SITUATIONS[self.situation]}, seed {self.seed}"

    @property
    def weight(self) -> float:
        """Accesses are what takes time; large requests are two of them."""
        return 1.0 if SITUATIONS[self.situation].request_bytes < 1 << 17 else 0.4


def rows(case: SituationCase, progress: Callable[[float, float], object] | None = None) -> list[SituationRow]:
    """One of each scheduler."""
    # So that short runs have observations, too.
    interval_s = INTERVAL_S * SCALE / case.part
    settings = [*(Setting("twins", window_s) for window_s in WINDOWS_S), Setting("fifo"), Setting("hbrr")]
    made = []
    for number, (name, setting) in enumerate(zip(SCHEDULERS, settings, strict=True), 1):
        outcome = simulate(
            SITUATIONS[case.situation], setting, case.seed, part=case.part, interval_s=interval_s
        )
        seen = [one.observation for one in outcome.seen if one.observation.bytes]
        made.append(
            SituationRow(
                case=case.id,
                run=number,
                runs=len(SCHEDULERS),
                situation=case.situation,
                seed=case.seed,
                scheduler=name,
                makespan_s=outcome.makespan_s,
                bytes=outcome.bytes,
                rewards=tuple(one.bytes_per_s for one in seen),
                demands=tuple(one.demand for one in seen),
            )
        )
        if progress is not None:
            progress(outcome.makespan_s, number / len(SCHEDULERS))
    return made


def run(folder: Path, seed: int = 1, part: int = SCALE, *, jobs: int = 0) -> study.Answers[SituationRow]:
    """Compute what `folder` has no rows of yet (`rows.jsonl`). Raises BadInput, Unavailable."""
    model = fingerprint(MODEL)
    cases = [SituationCase(number, seed, part, model) for number in range(len(SITUATIONS))]
    asked = msgspec.json.format(msgspec.json.encode({"seed": seed, "part": part})).decode() + "\n"
    return study.answers(cases, SituationRow, folder, ("study.json", asked), jobs=jobs)


described(SituationRow)
