"""Makes `tarazu/parts/forwarding/study/marenostrum4.csv` again: `python tests/data/evidence/extract_marenostrum4.py
GIT_DIRECTORY_OF_jeanbez/forge-evaluation`.

A row for each access pattern, in the order of its numbers; all repetitions of a cell, ascending.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

OUT = Path(__file__).parents[3] / "tarazu/parts/forwarding/study/marenostrum4.csv"
RESULTS = ("marenostrum-4", "marenostrum-4-gpfs")
"""With I/O nodes, and without."""
NUMBERS = (0, 1, 2, 4, 8)
FILES, ACCESS = ("per-process", "shared"), ("contiguous", "strided")

Pattern = tuple[int, int, int, int, int]


def main(directory: str) -> None:
    cells: dict[Pattern, dict[int, list[float]]] = {}
    for name in RESULTS:
        show = ["git", f"--git-dir={directory}", "show", f"HEAD:run/output/{name}/results/results.csv"]
        text = subprocess.run(show, capture_output=True, text=True, check=True).stdout
        for row in csv.DictReader(text.splitlines(), delimiter=";"):
            pattern = tuple(int(row[k]) for k in ("clients", "processes", "layout", "spatiality", "request"))
            values = cells.setdefault(pattern, {n: [] for n in NUMBERS})  # type: ignore[arg-type]
            values[int(row["forwarders"])].append(float(row["bandwidth"]))
    with OUT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        numbers = [f"io_nodes_{n}" for n in NUMBERS]
        writer.writerow(["nodes", "processes", "files", "access", "request_kib", *numbers])
        for pattern, values in sorted(cells.items()):
            nodes, processes, layout, spatiality, request = pattern
            repeated = (" ".join(f"{v:.1f}" for v in sorted(values[n])) for n in NUMBERS)
            writer.writerow([nodes, processes, FILES[layout], ACCESS[spatiality], request, *repeated])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
