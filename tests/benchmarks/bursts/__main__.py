"""What docs/bursts-study.md claims: `python -m tests.benchmarks.bursts [--only NAME...] [--short] [--json]`.

Each module of this folder with a `measure(short)` is one. The exit status is 1 when a figure is beyond its limit.
"""

import sys

from tests.benchmarks import suite

if __name__ == "__main__":
    sys.exit(suite.main("bursts", "make bench-bursts", "Judge what docs/bursts-study.md claims."))
