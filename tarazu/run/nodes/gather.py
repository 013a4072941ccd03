"""Fetch the spools of all nodes at the end of a job step, through the standard output of its launcher.

Nothing has to be shared by the nodes for that. Each says as well whether it saw the step's map.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tarazu import trusted
from tarazu.run.nodes import each_node
from tarazu.run.nodes.each_node import CommandLimits, EachNode
from tarazu.run.nodes.framed import SHELL, Frames, NodeAnswer
from tarazu.run.program import StartedProgram
from tarazu.trusted import ENTER

TIMEOUT_S = 30.0
"""The job step is over, and its allocation is paid for: what does not come soon is lost."""
HURRIED_S = 10.0
"""Where somebody wants the job to end, for a scheduler kills it soon after its signal; where it failed."""
MOST_BYTES = 2 << 30
"""From all nodes, as text."""
LEADERS = "leader"
"""A file in the spool directory of the leader's own node, which reads that one by itself."""

EMIT = """\
files() { for f; do [ -f "$f" ] && [ ! -L "$f" ] && [ -O "$f" ] || return; done; }
emit() {
    if [ $# -gt 500 ] && files "$@"; then cat "$@"; else for f; do files "$f" && case $f in
    *.ended.tzs) cat "$f";;
    *) head -c "$(od -An -tu8 -j16 -N8 "$f" | tr -d " ")" "$f" || cat "$f";;
    esac; done; fi
}
"""
"""Shell: prints spools one after the other, each at the length that it uses (bytes 16-23); those that have ended lie in
one file already. Where very many processes were killed that would take too long. What is no file of the user's is left
out."""

_COLLECT = (
    '[ -z "$3" ] || exec 2>/dev/null\n'
    + SHELL
    + ENTER
    + EMIT
    + """\
[ -z "$3" ] || { cd -P "$3" && [ -O . ]; } || exit
d=$1; map=$2; [ -z "$3" ] || exec > "./$from.out"
case $d in *%h*) d=$(printf %s "$d" | sed "s/%h/$(uname -n)/g");; esac
sees=no; [ -e "$map/control" ] && sees=yes
beside=${d%/*}.${d##*/}; taken=; some=; foreign=
for each in "$d" "$beside"; do
    enter "$each"
    case $? in 0) ;; 1) continue;; *) foreign=$foreign.; continue;; esac
    [ -e leader ] && { answer here $sees; exit; }
    mkdir taken 2>/dev/null || { [ -d taken ] || answer failed $sees; exit; }
    taken=$each; set -- ./*.tzs; [ -e "$1" ] && some=yes
done
all() { for each in "$d" "$beside"; do enter "$each" && set -- ./*.tzs && [ -e "$1" ] && emit "$@"; done; }
if [ "$foreign" = .. ]; then answer failed $sees
elif [ -z "$some" ]; then answer none $sees
else
    kind=raw; pack=cat
    command -v gzip >/dev/null && kind=gz && pack='gzip -1'
    for to in "$taken/taken" "${TMPDIR:-/tmp}/tarazu-$from" ""; do
        [ -n "$to" ] || { answer failed $sees; break; }
        all | $pack | { enter "$to" make && cat > all && send all $kind $sees; } && done=1 || done=
        remove "$to"; [ -z "$done" ] || break
    done
fi 2>/dev/null
remove "$d"; remove "$beside"; :
"""
)
"""What runs once on each node: needs a shell and coreutils, no Python. The spools are concatenated, and packed beside
themselves, or where temporary files go when that is full. They may lie beside their place, as `leftovers.beside` says;
where both are somebody else's there are none."""


class FromNodes(NamedTuple):
    """What came from other nodes."""

    problem: str = ""
    """What went wrong; empty: nothing."""
    answers: Sequence[NodeAnswer] = ()
    """One of each other node."""

    def recorded(self, *, with_map: bool) -> list[str]:
        """Nodes that recorded something and did, or did not, see the map."""
        recorded = (answer for answer in self.answers if answer.kind != "none")
        return [answer.node for answer in recorded if (answer.answer == "yes") == with_map]


def collect_command(spool: str, map_dir: Path, dest: Path | None = None) -> list[str]:
    """What prints the spools of the node where it runs; into a file in `dest` where printing is of no use."""
    return ["sh", "-c", _COLLECT, "sh", spool, str(map_dir), str(dest or "")]


def gather(
    each: EachNode,
    spool: str,
    map_dir: Path,
    dest: Path,
    environ: Mapping[str, str],
    program: StartedProgram | None = None,
) -> FromNodes:
    """Bring the spools of the other nodes into `dest`, as `*.tzs`; it lies in `map_dir`. `program` has ended."""
    frames = Frames(dest)
    command = collect_command(spool, map_dir, None if each.answers else map_dir / dest.name)
    try:
        problem = each_node.run(each, command, environ, frames.take, _limits(program))
        for path in sorted(dest.glob("*.out")):
            with open(trusted.open_file(path), "rb") as said:
                for line in said.read().splitlines():
                    frames.take(line)
    except OSError as error:
        problem = str(error)
    finally:
        frames.close()
    heard = {a.node: a for a in sorted(frames.answers, key=lambda a: a.kind != "here")}
    if not problem and frames.damaged:
        problem = f"damaged in transfer from {folded(frames.damaged)}"
    if not problem and (failed := [a.node for a in frames.answers if a.kind == "failed"]):
        problem = f"no room to pack them, or their directory belongs to another user, on {folded(failed)}"
    return FromNodes(problem, [a for a in heard.values() if a.kind != "here"])


def _limits(program: StartedProgram | None) -> CommandLimits:
    hurried = program is not None and program.hurried
    return CommandLimits(
        HURRIED_S if hurried else TIMEOUT_S, MOST_BYTES, lambda: bool(program and program.unwanted)
    )


def run_site_command(
    setting: str, spool: str, dest: Path, environ: Mapping[str, str], program: StartedProgram | None
) -> str:
    """What went wrong with the site's own `run.gather`, which has {spool} and {dest}; empty: nothing."""
    words = [word.replace("{spool}", spool).replace("{dest}", str(dest)) for word in shlex.split(setting)]
    each = EachNode((words[0],), ())
    return each_node.run(each, words[1:], environ, lambda _line: None, _limits(program))


def folded(names: Sequence[str], most: int = 8) -> str:
    """`n2, n3`, the first few of many."""
    first = sorted(set(names))
    more = len(first) - most
    return ", ".join(first[:most]) + (f" and {more} more" if more > 0 else "")
