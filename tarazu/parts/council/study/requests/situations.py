"""The study of the 144 situations: each with TWINS' seven windows, with FIFO, HBRR and shortest job first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tarazu.parts.council.study.requests.outcome import RequestsOutcome
from tarazu.parts.council.study.requests.simulate import Setting, simulate
from tarazu.parts.council.study.requests.situation import INTERVAL_S, SCALE, SITUATIONS, WINDOWS, WINDOWS_S
from tarazu.sim.study import study
from tarazu.sim.study.case import Case, fingerprint

MODEL = (
    "sim/kernel/calls.py",
    "parts/council/study/requests/schedulers",
    *(
        f"parts/council/study/requests/{name}.py"
        for name in (
            *("disk", "outcome", "placement", "request", "run", "simulate"),
            *("situation", "situations", "system", "workload"),
        )
    ),
    "parts/council/observation.py",
    "parts/council/pattern.py",
)
"""What computes a row."""
BASELINES = ("fifo", "hbrr", "sjf")
SHORT_PART = 512
"""To see that it works; nothing follows from so few requests."""


class SituationRow(msgspec.Struct, frozen=True):
    """One run of a situation. The same seed gives the same row, bit for bit."""

    case: Annotated[str, Meta(description="id of the case: hash of all that its result depends on")]
    run: Annotated[int, Meta(description="which row of the case, from 1")]
    runs: Annotated[int, Meta(description="rows of this case")]
    situation: Annotated[int, Meta(description="number in SITUATIONS")]
    seed: Annotated[int, Meta(description="with the rest, which run")]
    scheduler: Annotated[str, Meta(description="fifo, hbrr, sjf or a window of TWINS")]
    makespan_s: Annotated[float, Meta(description="as the user sees it")]
    bytes: Annotated[int, Meta(description="that moved")]
    accesses: Annotated[int, Meta(description="of the disks")]
    busy: Annotated[float, Meta(description="share of the time for which the disks were busy, 0-1")]
    turned: Annotated[float, Meta(description="share of the time for which they sought and turned, 0-1")]
    nodes: Annotated[tuple[int, ...], Meta(description="I/O node of each observation")]
    ends_s: Annotated[tuple[float, ...], Meta(description="when its interval ended")]
    rewards: Annotated[tuple[float, ...], Meta(description="bytes/s of it; nodes without I/O are left out")]
    demands: Annotated[tuple[float, ...], Meta(description="requests queued or in service, on average")]

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


def cases(seeds: Sequence[int] = (1,), part: int = SCALE) -> tuple[SituationCase, ...]:
    model = fingerprint(MODEL)
    return tuple(
        SituationCase(number, seed, part, model) for seed in seeds for number in range(len(SITUATIONS))
    )


def rows(case: SituationCase, progress: Callable[[float, float], object] | None = None) -> list[SituationRow]:
    """The baselines', then each window's."""
    situation = SITUATIONS[case.situation]
    # So that short runs have observations, too.
    interval_s = INTERVAL_S * SCALE / case.part
    settings = [(name, Setting(name)) for name in BASELINES]
    settings += [
        (name, Setting("twins", window_s)) for name, window_s in zip(WINDOWS, WINDOWS_S, strict=True)
    ]
    case_rows = []
    for number, (name, setting) in enumerate(settings, 1):
        outcome = simulate(situation, setting, case.seed, part=case.part, interval_s=interval_s)
        case_rows.append(_row(case, number, len(settings), name, outcome))
        if progress is not None:
            progress(outcome.makespan_s, number / len(settings))
    return case_rows


def _row(case: SituationCase, number: int, runs: int, name: str, outcome: RequestsOutcome) -> SituationRow:
    seen = [one for one in outcome.seen if one.observation.bytes]
    disks_s = len(outcome.busy_s) * outcome.makespan_s
    return SituationRow(
        case=case.id,
        run=number,
        runs=runs,
        situation=case.situation,
        seed=case.seed,
        scheduler=name,
        makespan_s=outcome.makespan_s,
        bytes=outcome.bytes,
        accesses=outcome.accesses,
        busy=sum(outcome.busy_s) / disks_s,
        turned=sum(outcome.turned_s) / disks_s,
        nodes=tuple(one.node for one in seen),
        ends_s=tuple(one.at_s for one in seen),
        rewards=tuple(one.observation.bytes_per_s for one in seen),
        demands=tuple(one.observation.demand for one in seen),
    )


def run(
    folder: Path, seeds: Sequence[int] = (1,), part: int = SCALE, *, jobs: int = 0, fresh: bool = False
) -> study.Answers[SituationRow]:
    """Compute what `folder` has no rows of yet (`rows.jsonl`). Arguments as those of `study.run`.

    Raises BadInput, Unavailable; on KeyboardInterrupt all rows that were done are on the disk.
    """
    asked = msgspec.json.format(msgspec.json.encode({"seeds": list(seeds), "part": part})).decode() + "\n"
    return study.answers(
        cases(seeds, part), SituationRow, folder, ("study.json", asked), jobs=jobs, fresh=fresh
    )
