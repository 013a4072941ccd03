"""Whether a file has the lines that a page says are printed: `python -m tests.docs.printed FILE < JSON`.

Each line of the page in its order; others may be between. `…` stands for anything.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path


def lacking(printed: str, expected: list[str]) -> list[str]:
    """The lines that did not come."""
    lines = iter(printed.splitlines())
    missing = []
    for line in filter(str.strip, expected):
        pattern = ".*".join(re.escape(part) for part in line.rstrip().split("…"))
        if not any(re.fullmatch(pattern, each.rstrip()) for each in lines):
            missing.append(line)
    return missing


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text()
    found = lacking(text, json.load(sys.stdin))
    for line in found:
        print(f"not printed: {line}")
    if found:
        print("but:", *text.splitlines(), sep="\n  ")
    sys.exit(1 if found else 0)
