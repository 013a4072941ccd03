"""How long the status page takes: `python -m tests.benchmarks.page [--only NAME...] [--short] [--json]`."""

import sys

from tests.benchmarks import suite

if __name__ == "__main__":
    sys.exit(suite.main("page", "make bench-page", "How long the status page takes, docs/page.md."))
