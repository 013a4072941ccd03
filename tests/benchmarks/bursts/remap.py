"""Remapping on generated machines, judged on days that no mapping was learned on (spatially-bursty-io, 7.4 and 7.5)."""

from __future__ import annotations

from tarazu.cli.output import Progress
from tarazu.parts.bursts.measures.published import NAMES
from tarazu.parts.bursts.study.remap_study import CONTIGUOUS, FEW_MOVED, KNOWING, ROUND_ROBIN, study
from tarazu.parts.bursts.study.system import generate
from tests.benchmarks.figure import Figure

SHORT_JOBS = 1500
TAKEN_AWAY = 0.15
"""Of the busiest I/O nodes' traffic, by i % n: the claim is that it is much, not how much."""
MORE = 1.4
"""Times as many I/O nodes serve the busiest compute nodes."""
AS_GOOD = 1.02
"""Beside i % n, what is learned from a day and a half: jobs run elsewhere on the next day, which is seen beforehand."""
A_TENTH = 0.97
"""Of the busiest I/O nodes' traffic is left where a tenth of the nodes is moved, at most."""


def measure(short: bool) -> list[Figure]:
    found = []
    with Progress() as progress:
        for name in NAMES:
            made = generate(name, SHORT_JOBS) if short else generate(name, progress=progress)
            seen = study(made, 5.0 if short else 60.0, progress)
            before, after = seen.of(CONTIGUOUS), seen.of(ROUND_ROBIN)
            knowing, few = seen.of(KNOWING), seen.of(FEW_MOVED)
            found += [
                Figure(f"{name}: busiest 10 % I/O nodes, {m.mapping}", 100 * m.busiest, "%")
                for m in seen.mappings
            ]
            found += [
                Figure(f"{name}: I/O nodes of the busiest 1 % nodes, {m.mapping}", m.io_nodes, "")
                for m in seen.mappings
            ]
            judged = [
                Figure(
                    f"{name}: i % n takes away of it",
                    1 - after.busiest / before.busiest,
                    "",
                    least=TAKEN_AWAY,
                ),
                Figure(
                    f"{name}: i % n, times as many I/O nodes",
                    after.io_nodes / before.io_nodes,
                    "",
                    least=MORE,
                ),
                Figure(f"{name}: learned beside i % n", knowing.busiest / after.busiest, "", most=AS_GOOD),
                Figure(
                    f"{name}: a tenth moved beside contiguous", few.busiest / before.busiest, "", most=A_TENTH
                ),
                Figure(f"{name}: nodes moved of a tenth", few.moved / seen.nodes, "", most=0.1),
            ]
            found += [f._replace(most=None, least=None) for f in judged] if short else judged
    return found
