"""The demonstration: the whole loop on a testbed with the real daemons, one scenario after another.

Five runs of an IOR-like, unmodified program are recorded while its files grow; the sixth is forecast and
placed. What it reached is read back from the files' actual layouts and stands beside Lustre's allocator (its
model, over many seeds, on the same system with the same files) and the bound that nothing can beat.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Literal

import msgspec

from tarazu import left
from tarazu.allocate import bounds, quality
from tarazu.errors import TarazuError
from tarazu.lustre import EOF
from tarazu.model import Component, CreateRequest, Layout, SystemView
from tarazu.run.plan.accepted import NOT_NOW
from tarazu.run.plan.reports import StepReports
from tarazu.sim import proof
from tarazu.sim.allocation import policies
from tarazu.sim.testbed import testbed as testbeds
from tarazu.sim.testbed.configuration import configure
from tarazu.sim.testbed.daemons import READY_S, mdsd_view, until, wait_until_ready
from tarazu.sim.testbed.library import library_directory
from tarazu.units import GIB, MIB

RUNS = 5
RANKS = 16
SEEDS = 20
GROWTH = 0.1
"""Each recorded run writes this share of the last one's size more than the one before …"""
UNSTEADY = (0.01, -0.02, 0.015, -0.01, 0.01)
"""… give or take this."""
AT_REST = 0.3
"""A server whose load is below this no longer feels the run before."""
PFL_1 = "[pfl-1]\nmatch = /ior/*\ncomponents = 0-128M:1, 128M-512M:3, 512M-2G:8, 2G-EOF:16\n"
SLOW_OST = 7

Metric = Literal["OST cost", "final fill", "completion time"]


class DemoScenario(msgspec.Struct, frozen=True):
    """One scenario of the demonstration (docs/benchmarks.md has them all)."""

    name: str
    metric: Metric
    block_bytes: int
    """Bytes per rank of the sixth run."""
    shared: bool = False
    pfl: str = ""
    stripe_count: str = "paper"
    fill: tuple[float, ...] | None = None
    slow: dict[int, float] = {}
    lustre_stripes: int = 8
    """Stripe count of the default layout with which Lustre's allocator is asked for plain files."""


def scenarios() -> tuple[DemoScenario, ...]:
    """In the order in which they are shown."""
    unequal = tuple(0.6 * i / 34 for i in range(35))
    return (
        DemoScenario("ior-fpp-32 plain", "OST cost", 2 * GIB),
        DemoScenario("ior-fpp-32 PFL 1", "OST cost", 2 * GIB, pfl=PFL_1),
        DemoScenario("unequal-fill", "completion time", 2 * GIB, fill=unequal),
        DemoScenario("slow-ost", "completion time", 2 * GIB, slow={SLOW_OST: 0.1}),
        DemoScenario("ior-ssf-16 auto", "OST cost", GIB, shared=True, stripe_count="auto"),
    )


class Compared(msgspec.Struct, frozen=True):
    """One quantity under Lustre's allocator (over the seeds), under tarazu, and its lower bound."""

    lustre_median: float
    lustre_lowest: float
    lustre_highest: float
    tarazu: float
    bound: float


class DemoResult(msgspec.Struct, frozen=True):
    """What came of one scenario."""

    name: str
    metric: Metric
    judged: Compared
    ost_cost: Compared
    oss_cost: Compared
    outcomes: dict[str, int]
    forecast_error: float
    """Mean relative error of the sixth run's file sizes."""
    last_value_error: float
    """The same for the baseline: as large as in the run before."""
    layouts_as_planned: int
    files: int
    fill_before: tuple[float, ...]
    """Used share of each OST before the sixth run."""
    lustre_shares: tuple[tuple[float, ...], ...]
    """Share of each OST's capacity that the sixth run used, per seed."""
    tarazu_shares: tuple[float, ...]
    seconds: float


Progress = Callable[[str], None]


class Demo:
    """One testbed per scenario, in `directory`, removed afterwards."""

    def __init__(self, directory: Path, progress: Progress = lambda text: None) -> None:
        self.directory = directory
        self.progress = progress

    def run(self, scenario: DemoScenario) -> DemoResult:
        """Record, predict, allocate, place, read back. Raises TarazuError, also for a run that was not placed."""
        started = time.monotonic()
        with self._testbed(scenario) as testbed:
            for number in range(1, RUNS + 1):
                self.progress(f"{scenario.name}: recording run {number} of {RUNS}")
                size = recorded_bytes(scenario, number)
                self._job(testbed, scenario, number, size, "observe")
                testbed.refresh()
                testbed.clear()
                testbed.refresh()
            view = self._view_after_refresh(testbed)
            self.progress(f"{scenario.name}: run {RUNS + 1}, forecast and placed")
            self._placed(testbed, scenario)
            return self._result(testbed, scenario, view, started)

    @contextmanager
    def _testbed(self, scenario: DemoScenario) -> Iterator[testbeds.Testbed]:
        self.progress(f"{scenario.name}: starting 7 OSSs, 35 OSTs and their daemons")
        testbeds.down(self.directory)
        testbed = testbeds.up(self.directory, fill=scenario.fill, slow=scenario.slow)
        try:
            settings: dict[str, Any] = {"stripe_count": scenario.stripe_count, "striping": "raid0"}
            if scenario.pfl:
                (self.directory / "etc" / "pfl.ini").write_text(scenario.pfl)
                settings["pfl_file"] = str(self.directory / "etc" / "pfl.ini")
            # Nothing here ends, or counts as silent, because the machine is busy.
            patience: dict[str, dict[str, Any]] = {
                "run": {"wait_s": READY_S, "alive_s": READY_S},
                "mdsd": {"stale_after_s": READY_S},
            }
            configure(testbed, {"layout": settings, **patience})
            testbed.start_daemons()
            wait_until_ready(testbed)
            yield testbed
        finally:
            testbeds.down(self.directory)

    def _job(
        self, testbed: testbeds.Testbed, scenario: DemoScenario, number: int, size: int, mode: str
    ) -> None:
        name = "run{run:03}/step{step}" + ("" if scenario.shared else ".rank{rank:05}")
        words = [
            library_directory() / "testbed" / "iorlike",
            *([] if scenario.shared else ["-F"]),
            *("-n", RANKS, "-b", size, "-t", 4 * MIB, "-r", number),
            *("-o", testbed.client_mount() / "ior" / name),
        ]
        # As in a batch job, the sizes stand in a script: the forecast has the history only, no arguments.
        script = self.directory / "job.sh"
        script.write_text("exec " + shlex.join(str(w) for w in words) + "\n")
        command = tarazu_command("run", "--app", "ior", "--mode", mode, "--", "sh", str(script))
        done = testbed.exec(0, command, capture_output=True, text=True)
        if done.returncode:
            raise TarazuError(f"the program ended with status {done.returncode}: {done.stderr.strip()}")

    def _placed(self, testbed: testbeds.Testbed, scenario: DemoScenario) -> None:
        """The sixth run; again, as if it had not been, while somebody of whom it needs a plan has no time."""
        deadline = time.monotonic() + READY_S
        while True:
            self._job(testbed, scenario, RUNS + 1, scenario.block_bytes, "place")
            run = newest_run(testbed)
            outcomes = run["outcomes"]
            if outcomes.get("hit", 0) == run["files"] > 0:
                return
            log = json.loads(query(testbed, "job", "show", "ior", "--json"))["log"]
            line = log[-1]["said"] if log else {}
            why = f"{outcomes.get('hit', 0)} of {run['files']} files placed: {not_placed(line)}"
            if line.get("plan", "none") not in {"none", *NOT_NOW} or time.monotonic() > deadline:
                raise TarazuError(why)
            self.progress(f"{scenario.name}: {why}; once more")
            wait_until_ready(testbed)
            query(testbed, "history", "forget", "--run", run["run_id"], "--yes")
            testbed.refresh()
            testbed.clear()
            testbed.refresh()

    def _view_after_refresh(self, testbed: testbeds.Testbed) -> SystemView:
        """mdsd's view once every OSS has reported after the last change: nothing of the runs is left, and it rests."""
        changed_s = time.time()
        before = [testbed.mds.get("base", ost) for ost in range(len(testbed.oss_of_ost))]
        views: list[SystemView] = []

        def problem() -> str:
            reply = mdsd_view(testbed)
            if reply.view is None or time.time() - reply.age_s <= changed_s:
                return "older ones"
            # A report, or mdsd's verdict on it, may come long after it was made.
            for ost in reply.view.osts:
                if ost.used_bytes - before[ost.index] >= MIB or not ost.usable:
                    return f"OST {ost.index} with files that are gone"
            if busy := [oss.name for oss in reply.view.osses if oss.load >= AT_REST]:
                return f"{busy[0]} at work still"
            views.append(reply.view)
            return ""

        until(testbed, "a report of every OSS after the last run", problem)
        return views[0]

    def _rows(self, testbed: testbeds.Testbed) -> list[dict[str, Any]]:
        """Files of the sixth run's plan, once clientd has worked on the report of what came of them: a job's end waits
        for neither.
        """
        home, socket = testbed.directory / "home", str(testbed.client_root() / "clientd.sock")
        kept = StepReports(home / "reports", socket, "demo")
        files, rows = newest_run(testbed)["files"], list[dict[str, Any]]()

        def problem() -> str:
            kept.deliver_kept()
            expected = json.loads(query(testbed, "history", "db", "show", "--json"))["files"]
            rows[:] = [row for row in expected if row["outcome"]]
            return "" if len(rows) >= files else f"those of {len(rows)} files"

        until(testbed, f"clientd to have the last run's outcomes of {files} files", problem)
        return rows

    def _result(
        self, testbed: testbeds.Testbed, scenario: DemoScenario, view: SystemView, started: float
    ) -> DemoResult:
        rows = self._rows(testbed)
        placed = dict(enumerate(testbed.usage().ost_bytes))
        plain = Layout((Component(0, EOF, 32 * MIB, scenario.lustre_stripes),))
        ours = [request(row) for row in rows]
        asked = ours if scenario.pfl else [CreateRequest(r.size_bytes, plain) for r in ours]
        speeds = testbed.speeds()
        truth = msgspec.structs.replace(
            view, osts=tuple(msgspec.structs.replace(o, write_bytes_per_s=speeds[o.index]) for o in view.osts)
        )
        drawn = [lustre_bytes(view, asked, seed) for seed in range(SEEDS)]
        capacity = {o.index: o.total_bytes for o in view.osts}
        compared = {
            "OST cost": compare(drawn, placed, quality.ost_cost, proof.utilization_bound(view, ours)),
            "OSS cost": compare(
                drawn, placed, lambda p: quality.oss_cost(view, p), bounds.oss_bound(view, ours)
            ),
            "final fill": compare(
                drawn, placed, lambda p: quality.final_fill(view, p), bounds.fill_bound(view, ours)
            ),
            "completion time": compare(
                drawn, placed, lambda p: quality.completion_time_s(truth, p), bounds.time_bound(truth, ours)
            ),
        }
        last_size = recorded_bytes(scenario, RUNS) * (RANKS if scenario.shared else 1)
        return DemoResult(
            name=scenario.name,
            metric=scenario.metric,
            judged=compared[scenario.metric],
            ost_cost=compared["OST cost"],
            oss_cost=compared["OSS cost"],
            outcomes=newest_run(testbed)["outcomes"],
            forecast_error=mean_error((row["forecast"]["size_bytes"], row["actual_bytes"]) for row in rows),
            last_value_error=mean_error((last_size, row["actual_bytes"]) for row in rows),
            layouts_as_planned=sum(as_planned(testbed, row) for row in rows),
            files=len(rows),
            fill_before=tuple(o.used_bytes / o.total_bytes for o in view.osts),
            lustre_shares=tuple(tuple(d[i] / capacity[i] for i in sorted(d)) for d in drawn),
            tarazu_shares=tuple(placed[i] / capacity[i] for i in sorted(placed)),
            seconds=time.monotonic() - started,
        )


def recorded_bytes(scenario: DemoScenario, number: int) -> int:
    """Bytes per rank of a recorded run: growing, but not along a ruler."""
    share = (1 - GROWTH * (RUNS + 1 - number)) * (1 + UNSTEADY[number - 1])
    return round(scenario.block_bytes * share / MIB) * MIB


def tarazu_command(*words: str) -> list[str]:
    """The `tarazu` of this installation."""
    return [sys.executable, "-m", "tarazu", *words]


def query(testbed: testbeds.Testbed, *words: str) -> str:
    """What a tarazu command prints on the testbed's first client."""
    done = testbed.exec(0, tarazu_command(*words), capture_output=True, text=True)
    if done.returncode:
        raise TarazuError(f"tarazu {words[0]}: {done.stderr.strip()}")
    return str(done.stdout)


def request(row: dict[str, Any]) -> CreateRequest:
    """The file as it was really written, in the layout that was planned for it."""
    return CreateRequest(row["actual_bytes"], msgspec.convert(row["layout"], Layout))


def lustre_bytes(view: SystemView, requests: list[CreateRequest], seed: int) -> dict[int, int]:
    """Bytes per OST when the model of Lustre's allocator places the same files."""
    allocation = policies.make("lsa", seed=seed).allocate(view, requests)
    return quality.ost_bytes(view, requests, allocation.files)


def compare(
    drawn: list[dict[int, int]],
    placed: dict[int, int],
    measure: Callable[[dict[int, int]], float],
    bound: float,
) -> Compared:
    values = [measure(d) for d in drawn]
    return Compared(median(values), min(values), max(values), measure(placed), bound)


def mean_error(pairs: Iterable[tuple[int, int | None]]) -> float:
    """Mean of |expected - real| / real over the files whose size is known."""
    errors = [abs(expected - real) / real for expected, real in pairs if real]
    return sum(errors) / len(errors) if errors else 0.0


def newest_run(testbed: testbeds.Testbed) -> dict[str, Any]:
    runs: list[dict[str, Any]] = json.loads(query(testbed, "history", "list", "--json"))
    if not runs:
        raise TarazuError("expected the run in the history, found none")
    return runs[-1]


def not_placed(line: Mapping[str, str]) -> str:
    """Why, from what the job's line says."""
    return left.sentence(line["why"]) if "why" in line else line.get("problem", "its line gives no reason")


def as_planned(testbed: testbeds.Testbed, row: dict[str, Any]) -> bool:
    """The file's actual OSTs, read back, are those of its row in the interaction database."""
    if row["placement"] is None or not row["actual_key"]:
        return False
    actual = testbed.layout(row["actual_key"].lstrip("/"))
    planned = [tuple(osts) for osts in row["placement"]["osts"]]
    covered = sum(c["start_bytes"] < row["actual_bytes"] for c in row["layout"]["components"])
    return [tuple(osts) for osts in actual.osts[:covered]] == planned[:covered]
