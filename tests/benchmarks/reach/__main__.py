"""What lies beside the placement of files: `python -m tests.benchmarks.reach [--only NAME...] [--short] [--json]`.

Each module of this folder with a `measure(short)` is one. The exit status is 1 when a figure is beyond its limit.
"""

import sys

from tests.benchmarks import suite

if __name__ == "__main__":
    sys.exit(suite.main("reach", "make bench-reach", "Metadata servers and progressive layouts."))
