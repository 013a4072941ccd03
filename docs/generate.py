"""Write what of the documentation is made: CSV files that git keeps, and whole pages of the site, which it does not.

python docs/generate.py [NAME…]     all, or those that are named
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import command_pages
import file_index

from tarazu.sim import stripe_counts

HERE = Path(__file__).parent
STRIPES = "default,OSTs,cases,better,worse,bound,bound of auto,highest,highest of auto,median gain"


def stripes() -> str:
    """The whole sweep as CSV, a row for each default and number of OSTs."""
    rows = [",".join(stripe_counts.cells(row)) for row in stripe_counts.summaries(stripe_counts.sweep())]
    return "\n".join((STRIPES, *rows, ""))


WHOLE: dict[str, Callable[[], str]] = {"commands": command_pages.page, "files": file_index.page}
"""Pages of the site alone, made anew with it."""
MADE: dict[str, tuple[str, Callable[[], str]]] = {
    "stripes": ("stripe-counts.csv", stripes),
    **{name: (f"{name}.md", page) for name, page in WHOLE.items()},
}
"""What is made → its file, and its text. `stripes` takes a minute, the others a second."""


def main(names: Sequence[str]) -> int:
    for name in names or MADE:
        file, text = MADE[name]
        (HERE / file).write_text(text())
        print(f"{HERE / file}: {name} written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
