"""Write the generated parts of the documentation: tables of settings and parameters, the sweep of stripe counts."""

from __future__ import annotations

import sys
from pathlib import Path

from tarazu import config
from tarazu.sim import stripe_counts
from tarazu.sim.study import reference
from tarazu.stats import params

SETTINGS_PAGE = Path(__file__).with_name("settings.md")
SOURCES = Path(__file__).with_name("sources.md")
BENCHMARKS = Path(__file__).with_name("benchmarks.md")
PARAMETERS = ("<!-- parameters: made by `make docs` -->", "<!-- end of parameters -->")
SETTINGS = ("<!-- settings: made by `make docs` -->", "<!-- end of settings -->")
STRIPES = ("<!-- stripe counts: made by `make docs` -->", "<!-- end of stripe counts -->")

SIMULATOR = Path(__file__).with_name("simulator.md")
SIMULATOR_TABLES = {
    name: (f"<!-- {name}: made by `make docs` -->", f"<!-- end of {name} -->") for name in ("keys", "columns")
}


def between(text: str, marks: tuple[str, str], table: str) -> str:
    """`text` with `table` between its marks."""
    begin, end = marks
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{table}\n{end}{after}"


def settings(text: str) -> str:
    """The page of settings with the present ones."""
    return between(text, SETTINGS, config.table())


def parameters(text: str) -> str:
    """The page of what is read with the present parameters of Lustre."""
    return between(text, PARAMETERS, params.table())


def simulator(text: str) -> str:
    """The simulator's page with the present keys and columns."""
    for name, marks in SIMULATOR_TABLES.items():
        text = between(text, marks, getattr(reference, name)())
    return text


def stripes_table() -> str:
    """The whole sweep, a row for each default and number of OSTs."""
    rows = [stripe_counts.HEADER, ("---",) + ("--:",) * (len(stripe_counts.HEADER) - 1)]
    rows += [stripe_counts.cells(row) for row in stripe_counts.summaries(stripe_counts.sweep())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> int:
    SETTINGS_PAGE.write_text(settings(SETTINGS_PAGE.read_text()))
    print(f"{SETTINGS_PAGE}: settings written")
    SOURCES.write_text(parameters(SOURCES.read_text()))
    print(f"{SOURCES}: parameters written")
    SIMULATOR.write_text(simulator(SIMULATOR.read_text()))
    print(f"{SIMULATOR}: keys and columns written")
    BENCHMARKS.write_text(between(BENCHMARKS.read_text(), STRIPES, stripes_table()))
    print(f"{BENCHMARKS}: stripe counts written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
