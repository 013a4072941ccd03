"""Decisions judged on measured data: `python -m tests.benchmarks.evidence [--only NAME...] [--short] [--json]`.

Each module of this folder with a `measure(short)` is one. The exit status is 1 when a figure is beyond its limit.
"""

import sys

from tests.benchmarks import suite

if __name__ == "__main__":
    sys.exit(
        suite.main(
            "evidence", "make bench-evidence", "Judge on measured data what docs/validation.md claims."
        )
    )
