"""Write the generated parts of the documentation: the table of settings in the operator guide."""

from __future__ import annotations

import sys
from pathlib import Path

from tarazu import config

GUIDE = Path(__file__).with_name("operator-guide.md")
BEGIN, END = "<!-- settings: made by `make docs` -->", "<!-- end of settings -->"


def rendered(text: str) -> str:
    """The guide with the present table of settings between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{config.table()}\n{END}{after}"


def main() -> int:
    GUIDE.write_text(rendered(GUIDE.read_text()))
    print(f"{GUIDE}: settings written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
