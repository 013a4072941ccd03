"""The first map of a job step, sent into the memory of nodes that do not share the map directory.

It travels through the launcher once per node, before the program starts: as standard input where every copy gets
that (srun), else in the arguments. There it lies beside the spools, which are fetched and removed at the end.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from tarazu.errors import TarazuError
from tarazu.run.nodes import each_node
from tarazu.run.nodes.each_node import EachNode
from tarazu.run.nodes.framed import SHELL, Frames
from tarazu.store import control
from tarazu.trusted import ENTER

MOST_IN_ARGUMENTS = 512 << 10
"""Bytes of a map that goes through a command line, which the kernel limits to 2 MiB with the environment."""
_ARGUMENT = 96 << 10
"""Characters of one argument; the kernel's limit is 128 KiB."""
_MOST_ANSWERED = 64 << 20

_RECEIVE = (
    SHELL
    + ENTER
    + """\
d=$1; map=$2; size=$3; generation=$4; shift 4
enter "$d" make || { answer refused no; exit; }
[ -e leader ] && { answer here yes; exit; }
mkdir "$map" && enter "$map" || { answer refused no; exit; }
if [ $# -gt 0 ]; then printf %s "$@" | base64 -d; else cat; fi > all
[ "$(($(wc -c < all)))" = "$size" ] && head -c $((size - 4096)) all > "map.$generation" &&
    tail -c 4096 all > part && rm all && mv part control &&
    answer got yes || { remove "$map"; answer cut no; }
"""
)
"""What runs once on each node: `<spool> <map directory> <bytes> <generation> [<base64>…]`. The control page comes last
and is there last."""


def send(
    each: EachNode,
    spool: str,
    map_dir: Path,
    here: Path,
    generation: int,
    environ: Mapping[str, str],
    seconds: float,
) -> Frames:
    """Bring `map.<generation>` and the control page of `map_dir` to the same place on every node; `here`: how it is
    reached on this one.

    Returns what they answered. Raises TarazuError when it is too large, or not all of it came within `seconds`.
    """
    size = (here / f"map.{generation}").stat().st_size
    if not each.feeds_all and size > MOST_IN_ARGUMENTS:
        raise TarazuError(
            f"a map of {size >> 10} KiB: {each.launcher} can send {MOST_IN_ARGUMENTS >> 10} KiB to other nodes"
        )
    whole = here / "all"
    page = control.new_page(generation)
    whole.write_bytes((here / f"map.{generation}").read_bytes() + page)
    frames = Frames(here)
    command = ["sh", "-c", _RECEIVE, "sh", spool, str(map_dir), str(size + len(page)), str(generation)]
    feed: BinaryIO | None = None
    try:
        with open(whole, "rb") as file:
            if each.feeds_all:
                feed = file
            else:
                text = base64.b64encode(file.read()).decode()
                command += [text[i : i + _ARGUMENT] for i in range(0, len(text), _ARGUMENT)]
            limits = each_node.CommandLimits(seconds, _MOST_ANSWERED, wait_for_stop=False)
            problem = each_node.run(each, command, environ, frames.take, limits, feed)
    finally:
        frames.close()
        whole.unlink(missing_ok=True)
    if problem:
        raise TarazuError(problem)
    return frames
