"""What is said of slow OSTs: `python -m tests.benchmarks.slow_osts [--only NAME...] [--short] [--json]`."""

import sys

from tests.benchmarks import suite

if __name__ == "__main__":
    sys.exit(
        suite.main("slow_osts", "make bench-slow-osts", "Judge what docs/benchmarks.md claims of slow OSTs.")
    )
