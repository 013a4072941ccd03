"""Write the generated parts of the documentation: settings, metrics, errors, tables as CSV; whole pages of the site.

python docs/generate.py [NAME…]     all, or those of PAGES and WHOLE that are named
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import command_pages
import error_table
import file_index
import metric_table
import scenario_tables

from tarazu import config
from tarazu.part import installed
from tarazu.sim import stripe_counts
from tarazu.stats import params

HERE = Path(__file__).parent
PARAMETERS = ("<!-- parameters: made by `make docs` -->", "<!-- end of parameters -->")
SETTINGS = ("<!-- settings: made by `make docs` -->", "<!-- end of settings -->")
METRICS = ("<!-- metrics: made by `make docs` -->", "<!-- end of metrics -->")
ERRORS = ("<!-- errors: made by `make docs` -->", "<!-- end of errors -->")
STRIPES = "default,OSTs,cases,better,worse,bound,bound of auto,highest,highest of auto,median gain"


def between(text: str, marks: tuple[str, str], table: str) -> str:
    """`text` with `table` between its marks."""
    begin, end = marks
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{table}\n{end}{after}"


def stripes(_before: str) -> str:
    """The whole sweep as CSV, a row for each default and number of OSTs."""
    rows = [",".join(stripe_counts.cells(row)) for row in stripe_counts.summaries(stripe_counts.sweep())]
    return "\n".join((STRIPES, *rows, ""))


def of_part(name: str, text: str) -> str:
    """A part's page, with its settings and its metrics."""
    part = installed()[name]
    own = {f"{config.PART}.{name}": part.settings} if part.settings else {}
    made = between(text, SETTINGS, config.table(own).partition("\n\n")[2].strip())
    return between(made, METRICS, "\n".join(map(metric_table.line, metric_table.of_part(part))))


PAGES: dict[str, tuple[Path, Callable[[str], str]]] = {
    "settings": (HERE / "settings.md", lambda text: between(text, SETTINGS, config.table())),
    "metrics": (HERE / "metrics.md", lambda text: between(text, METRICS, metric_table.table())),
    "sources": (HERE / "sources.md", lambda text: between(text, PARAMETERS, params.table())),
    "errors": (HERE / "errors.md", lambda text: between(text, ERRORS, f"\n{error_table.table()}\n")),
    "keys": (HERE / "scenario-keys.csv", lambda _: scenario_tables.keys()),
    "columns": (HERE / "scenario-columns.csv", lambda _: scenario_tables.columns()),
    "stripes": (HERE / "stripe-counts.csv", stripes),
}
PAGES |= {
    name: (HERE / part.page, functools.partial(of_part, name))
    for name, part in installed().items()
    if part.page
}
"""What is made → its file, and the file made anew of what it is. `stripes` takes a minute, the others a second."""
WHOLE: dict[str, Callable[[], str]] = {"commands": command_pages.page, "files": file_index.page}
"""Pages of the site alone, made anew with it: git does not keep them."""


def main(names: Sequence[str]) -> int:
    for name in names or (*PAGES, *WHOLE):
        if name in WHOLE:
            page = HERE / f"{name}.md"
            page.write_text(WHOLE[name]())
        else:
            page, made = PAGES[name]
            page.write_text(made(page.read_text()))
        print(f"{page}: {name} written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
