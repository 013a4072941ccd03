"""Makes `fill.csv` again: `python tests/data/evidence/extract_fill.py GIT_DIRECTORY_OF_NERSC/pytokio`.

The share of its space that each OST had in use, as `lfs df` said it first and last of a day, on four file systems.
"""

from __future__ import annotations

import csv
import gzip
import re
import subprocess
import sys
from pathlib import Path

OUT = Path(__file__).with_name("fill.csv")
SOURCE = "HEAD:tests/inputs/sample_ost-fullness.txt.gz"
OST = re.compile(r"^(\w+)-OST([0-9a-f]{4})_UUID\s+\d+\s+(\d+)\s+(\d+)\s")


def main(directory: str) -> None:
    git = ("git", "--git-dir", directory, "show", SOURCE)
    text = gzip.decompress(subprocess.run(git, capture_output=True, check=True).stdout).decode()
    at, used = 0, dict[tuple[str, int], dict[int, float]]()
    for line in text.splitlines():
        if line.startswith("BEGIN "):
            at = int(line.split()[1])
        elif found := OST.match(line):
            share = int(found[3]) / (int(found[3]) + int(found[4]))
            used.setdefault((found[1], int(found[2], 16)), {})[at] = share
    with OUT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("file_system", "ost", "first_used_share", "last_used_share"))
        for (name, ost), shares in sorted(used.items()):
            writer.writerow((name, ost, f"{shares[min(shares)]:.4f}", f"{shares[max(shares)]:.4f}"))


if __name__ == "__main__":
    main(sys.argv[1])
