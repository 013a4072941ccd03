"""How long jobs take: `python -m tests.benchmarks.time [--short] [--json]`."""

import sys

from tests.benchmarks import suite

if __name__ == "__main__":
    sys.exit(
        suite.main("time", "make bench-time", "Jobs' times under tarazu beside Lustre's own, cell by cell.")
    )
