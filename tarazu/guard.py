"""What was started for this process ends when it does, whatever its end is: SIGTERM, SIGKILL, a fault.

A shell of its own session reads a pipe of which this process holds the other end.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tarazu import signals

_SCRIPT = """
read -r over && exit
marked() { grep -lzxF -e "$1" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3; }
signal=TERM nothing=0
while [ $nothing -lt 3 ]; do
    nothing=$((nothing + 1))
    if pids=$(marked "$1") && [ "$pids" ]; then
        kill -$signal $pids 2>/dev/null
        signal=KILL nothing=0
    fi
    sleep 1
done
[ -z "$2" ] || rm -rf -- "$2"
"""
"""It looks until it has found nothing for a while: who was being started when this process ended shows the mark only
once it is another program.
"""


class Guard:
    """Over the processes that have `name`=`value` in their environment, and a directory of theirs that goes too."""

    def __init__(self, name: str, value: str, directory: Path | None = None) -> None:
        """Raises OSError."""
        with signals.as_given():
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "sh", f"{name}={value}", str(directory or "")],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.defpath},
                start_new_session=True,  # what ends this process's group does not end it
            )

    def leave(self) -> None:
        """Nothing is left to be ended."""
        self._process.communicate(b"over\n")
