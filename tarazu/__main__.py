"""`python -m tarazu` is the `tarazu` command."""

import sys

from tarazu.cli import main

if __name__ == "__main__":
    sys.exit(main())
