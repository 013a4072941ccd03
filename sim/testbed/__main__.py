"""`python -m tarazu.sim.testbed`: the same commands as `tarazu testbed`."""

from __future__ import annotations

import argparse
import sys

from tarazu.errors import TarazuError
from tarazu.sim.testbed.cli import DESCRIPTION, add_commands


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tarazu testbed", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_commands(parser)
    arguments = parser.parse_args()
    try:
        status: int = arguments.handler(arguments)
    except TarazuError as error:
        print(f"tarazu: {error}", file=sys.stderr)
        return error.exit_status
    return status


if __name__ == "__main__":
    sys.exit(main())
