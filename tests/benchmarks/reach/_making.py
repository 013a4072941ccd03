"""A program of several ranks, each of which makes directories and files in them: `_making.py PARENT RANKS EACH FILES`.

Every rank is a process of its own, as a launcher would start it.
"""

from __future__ import annotations

import os
import subprocess
import sys


def main(parent: str, ranks: int, each: int, files: int) -> int:
    if "PMI_RANK" not in os.environ:
        of_rank = [
            subprocess.Popen(
                [sys.executable, "-S", __file__, *sys.argv[1:]],
                env={**os.environ, "PMI_RANK": str(rank), "PMI_SIZE": str(ranks)},
            )
            for rank in range(ranks)
        ]
        return max(process.wait() for process in of_rank)
    rank = int(os.environ["PMI_RANK"])
    made = [f"{parent}/rank{rank:03d}.{n}" for n in range(each)]
    for path in made:
        os.mkdir(path)
    for path in made:
        for n in range(files):
            os.close(os.open(f"{path}/file.{n:04d}", os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o644))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
