"""Why files of a job were left to Lustre, in a sentence; and why a job that was started has left no trace."""

from __future__ import annotations

import os

from tarazu import config, left
from tarazu.cli.job.own import Line
from tarazu.cli.run import left_alone
from tarazu.config import Settings
from tarazu.errors import TarazuError
from tarazu.stats import client
from tarazu.store.stop import site_stop


def sentence(line: Line) -> str:
    """Of a step that ended; empty where nothing was left."""
    why = line.said.get("why", "")
    count, files = line.said.get("left", ""), line.said.get("files", "0")
    if not why:
        return ""
    of = "1 file" if count == files == "1" else f"{count} of {files} files"
    seen = count.isdecimal() and files.isdecimal() and int(count) <= int(files)
    return f"{f'{of} ' if seen else ''}left to Lustre: {left.sentence(why)}"


def untouched(settings: Settings) -> str:
    """Why `tarazu run` would start a program here as if tarazu were not there; empty where it would not."""
    if os.environ.get("TARAZU_DISABLE", "0") not in ("", "0") or site_stop(settings.run.stop_file):
        return left.sentence(left.DISABLED)
    if left_alone(settings.run):
        return left.sentence(left.EXCLUDED)
    try:
        mounted = client.mounts(config.root())
    except TarazuError as error:
        return str(error)
    return "" if mounted else left.sentence(left.NOT_LUSTRE)
