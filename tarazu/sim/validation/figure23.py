"""Figure 23 of the paper (section 7.5): the scalability study, through `tarazu sim study` as anyone would run it.

The paper's figure rests on logs that are not public and on rates that it does not print. So what is judged is
that the stand-ins move table 7's volumes and that the study ends in time; the bandwidths of tarazu beside
those of Lustre's allocator in the same simulator are shown, mean of the seeds. The start is not printed: OSTs are
empty, and, for some sizes, 0 to 25 % full.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from tarazu.errors import TarazuError
from tarazu.sim.study import results
from tarazu.sim.study.summary import Summary, baseline_of, gain_text, summaries
from tarazu.sim.validation.progress import Progress
from tarazu.sim.validation.row import ValidationRow, relative

GB = 10**9
SECONDS = 1800.0
READ_GB, WRITTEN_GB = 110.6 + 100.8 + 250.6, 80.2 + 150.3 + 52.4
"""Table 7, all three applications."""
SHORT = {
    "policies": 'policies = ["lsa", "tarazu"]',
    "layouts": 'layouts = ["plain"]',
    "seeds": "seeds = 1",
    "steps": "steps = 1",
    '"cluster.osts"': '"cluster.osts" = [160]',
}
"""Lines that the short form has instead: one seed of two policies, larger files, the smallest system."""
FULLER = {
    **{name: SHORT[name] for name in ("policies",)},
    "seeds": "seeds = 3",
    '"cluster.osts"': '"cluster.osts" = [160, 640, 3600]',
    "preset": f'preset = "scaling"\nused = {[round(0.25 * (7 * n % 20) / 19, 4) for n in range(20)]}',
}
"""Lines of the study on OSTs that are unequally full."""


def scenario(changed: Mapping[str, str]) -> str:
    """The example `figure-23.toml`, other lines for those that begin so."""
    text = (files("tarazu.sim.study") / "examples" / "figure-23.toml").read_text()
    lines = [changed.get(line.split(" = ")[0], line) for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def study(changed: Mapping[str, str], folder: Path) -> tuple[list[results.ScenarioRow], float]:
    """All rows, and how long they took on all cores."""
    file = folder / "figure-23.toml"
    file.write_text(scenario(changed))
    command = [sys.executable, "-m", "tarazu", "sim", "study", str(file), "--out", str(folder / "out")]
    started = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    seconds = time.monotonic() - started
    if done.returncode:
        raise TarazuError(f"figure 23: expected a study, found {done.stderr.strip()[-500:]}")
    return results.read(folder / "out" / "rows.jsonl"), seconds


def rows(full: bool = False, progress: Progress = lambda text: None) -> tuple[ValidationRow, ...]:
    """Time, volumes, and two rows for each policy, layout and number of OSTs."""
    progress("figure 23: " + ("420 cases" if full else "2 cases"))
    fuller: list[results.ScenarioRow] = []
    with TemporaryDirectory() as folder:
        cases, seconds = study({} if full else SHORT, Path(folder))
    if full:
        progress("figure 23, OSTs 0-25 % full: 54 cases")
        with TemporaryDirectory() as folder:
            fuller, _ = study(FULLER, Path(folder))
    judged = [
        ValidationRow(
            "figure 23", "wall clock, s", SECONDS, seconds, seconds / SECONDS, 1.0, "may take so long"
        )
    ]
    for case in cases:
        if not case.error:
            name = f"figure 23: {case.osts} OSTs, {case.layout}, {case.policy}, seed {case.seed}"
            moved = (("read", READ_GB, case.read_bytes), ("written", WRITTEN_GB, case.written_bytes))
            for what, volume, value in moved:
                judged.append(relative(name, f"{what}, GB", volume, value / GB, 1e-9, "table 7"))
    volumes = [max(judged[1:], key=lambda row: row.error)] if judged[1:] else []
    shown = [*_compared(summaries(cases), ""), *_compared(summaries(fuller), ", 0-25 % full")]
    return (judged[0], *volumes, *shown)


def _compared(cells: Sequence[Summary], start: str) -> list[ValidationRow]:
    if not cells:
        return []
    baseline = baseline_of([cell.policy for cell in cells])
    lustre = {(cell.sweep, cell.layout): cell for cell in cells if cell.policy == baseline}
    shown = []
    for cell in cells:
        if cell.policy == baseline:
            continue
        beside = lustre[cell.sweep, cell.layout]
        osts = dict(cell.sweep).get("cluster.osts", 0)
        failed = f", {cell.failed} of {cell.seeds} seeds without result" if cell.failed else ""
        pairs = (
            ("read", beside.read.mean, cell.read.mean, cell.read_gain),
            ("written", beside.write.mean, cell.write.mean, cell.write_gain),
        )
        for what, theirs, ours, gain in pairs:
            name = f"figure 23: {osts} OSTs{start}, {cell.layout}, {cell.policy}: {what}"
            source = f"Lustre's allocator here; gain: {gain_text(gain) or 'none known'}{failed}"
            shown.append(relative(name, "GB/s", theirs / GB, ours / GB, math.inf, source))
    return shown
