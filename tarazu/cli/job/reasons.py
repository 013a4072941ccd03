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
from tarazu.trace.records import OUTCOMES


def sentence(line: Line) -> str:
    """Of a step that ended; empty where nothing was left."""
    word = line.said.get("why", "")
    files, hits = (int(n) if n.isdecimal() else 0 for n in (line.said.get(k, "0") for k in ("files", "hit")))
    if not word or (files and files <= hits):
        return ""
    of = f"{files - hits} of {files} files left to Lustre" if files else "left to Lustre"
    return f"{of}{'' if _of_all(line) else ', mostly'}: {left.sentence(word)}"


def _of_all(line: Line) -> bool:
    """Whether the word can be that of every file that was left, not only of most."""
    others = [line.said[name] for name in OUTCOMES if name != "hit" and name in line.said]
    return len(others) <= 1 and line.said.get("left") in (None, *others)


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
