"""The daemons' programs, those of parts too: all start here, by the name that was called.

Where the part that has one was taken away, or something that it needs, that is a line.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys

from tarazu.daemons.service_manager import log_to_stderr
from tarazu.errors import BadInput
from tarazu.part import found, installed

log = logging.getLogger("tarazu.daemons")

CORE = {
    "tarazu-clientd": "tarazu.daemons.clientd.service",
    "tarazu-mdsd": "tarazu.daemons.mdsd.service",
    "tarazu-ossd": "tarazu.daemons.ossd.service",
}


def programs() -> dict[str, str]:
    """Program → its module, which has `command_line() -> ArgumentParser` and `main() -> exit status`."""
    return CORE | {name: module for part in installed().values() for name, module in part.programs.items()}


def main() -> int:
    """The entry point of each."""
    name = os.path.basename(sys.argv[0])
    try:
        program = importlib.import_module(_module_of(name))
        return int(program.main())
    except KeyboardInterrupt:
        return 130
    except (BadInput, ImportError) as error:
        log_to_stderr(name, verbose=False)
        needed = "" if isinstance(error, BadInput) else "expected all Python packages that it needs; found "
        log.critical("%s%s", needed, error)
        return BadInput.exit_status


def _module_of(name: str) -> str:
    """Raises BadInput."""
    if module := programs().get(name, ""):
        return module
    for part in found().values():
        if name in part.programs:
            missing = [need for need in part.needs if need not in installed()]
            raise BadInput(
                "parts of tarazu", f"those that {part.name} needs, {', '.join(part.needs)}", missing
            )
    raise BadInput("parts of tarazu", "the one that has this program", [*installed()])
