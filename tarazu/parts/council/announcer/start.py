"""The program tarazu-announcer: what a former run left is restored first; what takes long to load comes after that.

Its unit may use a fifth of a processor: on a slow node all that it loads takes half a minute.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import TYPE_CHECKING

from tarazu import config
from tarazu.daemons.service import Wakeup, parser, serve
from tarazu.errors import TarazuError
from tarazu.parts.changes.noted import LOCK_S
from tarazu.parts.council.agent import agent_of

if TYPE_CHECKING:
    from tarazu.parts.council.announcer.service import Announcer

log = logging.getLogger("tarazu.announcer")
NAME = "tarazu-announcer"


def command_line() -> argparse.ArgumentParser:
    """Its options."""
    options = parser(NAME, "Report this node's I/O to the council, and set what it decides.")
    options.add_argument("--name", default="", help="name of this node (default: host name)")
    options.add_argument(
        "--kind", choices=("oss", "client"), help="default: what Lustre shows here, now and later"
    )
    return options


def main(argv: list[str] | None = None) -> int:
    chosen = command_line().parse_args(argv)

    def read() -> config.Settings:
        return config.override(config.load(chosen.config), "keys", directory=chosen.keys)

    def make(settings: config.Settings, wakeup: Wakeup) -> Announcer:
        restore_left(settings, "left by a former run")
        from tarazu.parts.council.announcer.service import Announcer

        try:
            return Announcer(settings, wakeup, chosen.kind, chosen.name)
        except TarazuError as error:
            restore_left(settings, f"tarazu-announcer cannot start: {error}")
            raise

    return serve(NAME, chosen, read, make)


def restore_left(settings: config.Settings, why: str) -> None:
    """What a former run of the daemon left, where this one cannot begin; nothing while another one runs."""
    agent = agent_of(settings)
    try:
        if not agent.store.exists:
            return
        claim = agent.store.claim()
        try:
            agent.engine.take_back(why, wait_s=LOCK_S)
        finally:
            os.close(claim)
    except TarazuError as error:
        log.warning("the changes of an earlier run cannot be restored: %s", error)


if __name__ == "__main__":
    sys.exit(main())
