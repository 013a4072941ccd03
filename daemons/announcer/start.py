"""The program tarazu-announcer: what a former run left is restored first; what takes long to load comes after that.

Its unit may use a fifth of a processor: on a slow node all that it loads takes half a minute.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys

from tarazu import config
from tarazu.daemons.levers.keeper import restore_left
from tarazu.daemons.process import Reread, Wakeup, parser, run
from tarazu.errors import TarazuError

log = logging.getLogger("tarazu.announcer")

NAME = "tarazu-announcer"
USED = ("keys.", "ossd.root", "ossd.name", "tune.", "run.stop_file", "metrics.announcer")


def command_line() -> argparse.ArgumentParser:
    """Its options."""
    options = parser(NAME, "Tell the council what this node sees of its I/O, and do what it decides.")
    options.add_argument("--name", help="name of this node (default: host name)")
    options.add_argument(
        "--kind", choices=("oss", "router", "client"), help="default: what Lustre shows here"
    )
    options.add_argument("--council", metavar="ADDRESS", help="instead of tune.council: tcp://mds1:5774")
    return options


def main(argv: list[str] | None = None) -> int:
    chosen = command_line().parse_args(argv)

    def read() -> config.Settings:
        settings = config.override(config.load(chosen.config), "ossd", name=chosen.name, root=chosen.root)
        settings = config.override(settings, "tune", council=chosen.council)
        return config.override(settings, "keys", directory=chosen.keys)

    def body() -> int:
        settings = read()
        restore_left(settings, "left by a former run")
        from tarazu.daemons.announcer.service import Announcer

        with Wakeup() as wakeup:
            try:
                announcer = Announcer(settings, wakeup, Reread(settings, read, USED), chosen.kind)
            except TarazuError as error:
                restore_left(settings, f"tarazu-announcer cannot begin: {error}")
                raise
            with contextlib.closing(announcer):
                announcer.loop()
        log.info("stopped")
        return 0

    return run(NAME, chosen, body)


if __name__ == "__main__":
    sys.exit(main())
