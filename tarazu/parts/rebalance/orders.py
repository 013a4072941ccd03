"""Moves as `lfs migrate` options, and as a script that a site can read, run, stop, resume and take back.

`--non-block` (2.12 and later) takes a lease and gives up where somebody writes; without it the file is locked while
it is copied. Not its short form: `lfs_migrate -n` only prints. That script, deprecated after 2.17, is not needed:
`lfs migrate` keeps the inode, and with it hard links. `-W` (bandwidth, 2.16 and later) throttles within a file; the
script also waits between files, so that older clients keep the rate on average.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tarazu.allocate.problem import Array
from tarazu.errors import BadInput
from tarazu.layout.setstripe import format_layout
from tarazu.model import Layout
from tarazu.names import quoted
from tarazu.parts.rebalance.files import Files, Shape
from tarazu.parts.rebalance.moves import Move, Wider
from tarazu.units import MIB

THROTTLES = (2, 16)
"""Version of Lustre from which `lfs migrate` has `-W`."""


class MoveOrder(msgspec.Struct, frozen=True):
    """One file to move, as text."""

    path: str
    size_bytes: int
    modified_s: int
    old: str
    """Options of `lfs migrate` that take it back."""
    new: str


def orders(files: Files, index: Array, moves: Sequence[Move]) -> list[MoveOrder]:
    """index: OST index of each place."""
    made = []
    for move in moves:
        of = files.stat(move.file)
        old, new = (
            options(files.shape(move.file), [int(index[p]) for p in places])
            for places in (move.before, move.after)
        )
        made.append(MoveOrder(files.path(move.file), of.size_bytes, of.modified_s, old, new))
    return made


def options(shape: Shape, osts: Sequence[int]) -> str:
    """The layout with these OSTs for its objects; components without objects get theirs when they are written."""
    left = list(osts)
    lists: list[tuple[int, ...]] = []
    for component, placed in zip(shape.layout, shape.placed, strict=True):
        count = component.stripe_count if placed else 0
        lists.append(tuple(left[:count]))
        del left[:count]
    return format_layout(shape.layout, lists)


def throttle(bytes_per_s: float, root: str | Path = "/") -> str:
    """`-W` in whole MiB/s; empty where the Lustre below `root` is older than that option (2.16)."""
    try:
        text = (Path(root) / "sys/fs/lustre/version").read_text(errors="replace")
    except OSError:
        text = ""
    match = re.search(r"(\d+)\.(\d+)", text)
    if match and (int(match[1]), int(match[2])) < THROTTLES:
        return ""
    return f"-W {max(1, int(bytes_per_s / MIB))}M"


def command(order: MoveOrder, limit: str) -> str:
    """limit: as `throttle` has it."""
    return " ".join(filter(None, ("lfs migrate --non-block", limit, order.new, quoted(order.path))))


def widening(files: Files, wide: Wider, limit: str) -> str:
    """The command that gives a plain file more stripes; Lustre chooses the OSTs."""
    (component,) = files.shape(wide.file).layout.components
    layout = Layout((msgspec.structs.replace(component, stripe_count=wide.stripe_count),))
    words = ("lfs migrate --non-block", limit, format_layout(layout), quoted(files.path(wide.file)))
    return " ".join(filter(None, words))


def script(all_: Sequence[MoveOrder], bytes_per_s: float, about: Sequence[str], stop_file: str) -> bytes:
    """A bash script of these moves in this order. about: lines for its head."""
    head = "".join(f"# {shlex.quote(line)[1:-1] if line.isprintable() else ''}\n" for line in about)
    rows = "".join(
        f"add {n} {o.size_bytes} {o.modified_s} {shlex.quote(o.old)} {shlex.quote(o.new)} {shlex.quote(o.path)}\n"
        for n, o in enumerate(all_, 1)
    )
    body = _SCRIPT.replace("@HEAD@", head).replace("@RATE@", str(max(1, int(bytes_per_s / MIB))))
    body = body.replace("@STOP@", shlex.quote(stop_file))
    before, after = body.split("@ROWS@\n")
    return os.fsencode(before + rows + after)


def write_script(path: Path, content: bytes) -> None:
    """Raises BadInput, also where the file is there: it may have been run, and knows the way back."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise BadInput(str(path), "a new file for the script", error.strerror) from None
    os.chmod(path, stat.S_IRWXU)


_SCRIPT = r"""#!/bin/bash
# Moves files to other OSTs with `lfs migrate`, one after another; made by `tarazu change rebalance --advise --script`.
@HEAD@#
#   bash THIS         move; goes on where it was stopped
#   bash THIS undo    take back what was moved, the newest first
#   bash THIS list    what it would do, and what is done
#
# A file that was changed since the advice, that somebody writes, or that HSM knows is left as it is. Interrupting is
# safe: `lfs migrate` writes a copy without a name and exchanges it for the old objects at the end.
set -u
export LC_ALL=C
RATE=${RATE:-@RATE@}           # MiB/s, on average
STOP=${STOP:-@STOP@}           # ends when this file is there: `tarazu disable --site`
BUSY=${BUSY:-}                 # a command that succeeds while files should not be moved: asked before each
LFS=${LFS:-lfs}
notes=$0.notes                 # what was begun, moved, left, taken back: a line each

size=() modified=() old=() new=() path=() state=()
add() { size[$1]=$2 modified[$1]=$3 old[$1]=$4 new[$1]=$5 path[$1]=$6; }
@ROWS@
say() { printf '%s\n' "$*" >&2; }

note() { # number, word: on disk before the next step
    printf '%s %s\n' "$1" "$2" >>"$notes" && sync "$notes" || { say "$notes: cannot be written"; exit 1; }
}

is_known_to_hsm() {
    case $("$LFS" hsm_state "$1" 2>/dev/null) in
        *exists*|*archived*|*released*) return 0 ;;
    esac
    return 1
}

ask() { # number, layout, word for the notes
    local file=${path[$1]} begin took
    [ -e "$STOP" ] && { say "stopped: $STOP is there"; exit 3; }
    while [ -n "$BUSY" ] && $BUSY >/dev/null 2>&1; do
        [ -e "$STOP" ] && { say "stopped: $STOP is there"; exit 3; }
        sleep "${PAUSE:-60}"
    done
    if [ "$(stat -c '%F %s %Y' -- "$file" 2>/dev/null)" != "regular file ${size[$1]} ${modified[$1]}" ]; then
        say "$file: changed or gone since the advice: left"
        return 0
    fi
    is_known_to_hsm "$file" && { say "$file: known to HSM: left"; return 0; }
    note "$1" begun
    begin=$SECONDS
    # $2 is a list of words without blanks in them.
    if "$LFS" migrate --non-block $limit $2 "$file"; then
        note "$1" "$3"
        printf '%s of %s: %s: %s\n' "$1" "${#path[@]}" "$3" "$file"
        failed=0
    else
        # It stays what it was before this try: what fails has not been exchanged.
        note "$1" "${state[$1]:-left}"
        say "$file: not moved (in use, or no space): left"
        failed=$((failed + 1))
        [ "$failed" -lt 10 ] || { say "10 failures in a row"; exit 1; }
        return 0
    fi
    took=$((SECONDS - begin))
    begin=$((size[$1] / RATE / 1048576 - took))
    [ "$begin" -gt 0 ] && sleep "$begin"
    return 0
}

exec 9>>"$notes" || exit 1
flock -n 9
case $? in
    0) ;;
    1) say "$0 is running already"; exit 1 ;;
    *) say "$notes: no lock to be had there: goes on without; see to it that it runs once" ;;
esac
while read -r n word; do
    case $n in ''|*[!0-9]*) continue ;; esac
    [ -n "${path[$n]+x}" ] && state[$n]=$word
done <"$notes"
case $RATE in ''|0*|*[!0-9]*) say "RATE: expected MiB/s, 1 or more, found $RATE"; exit 2 ;; esac
limit=
# 2.16 has it and does not say so.
{ "$LFS" help migrate; "$LFS" migrate --help; "$LFS" --version; } 2>&1 </dev/null |
    grep -q -e --bandwidth -e '^lfs 2\.16' && limit="-W ${RATE}M"
failed=0
case ${1:-move} in
    move)
        for n in "${!path[@]}"; do
            [ "${state[$n]-}" = moved ] || ask "$n" "${new[$n]}" moved
        done ;;
    undo)
        for n in $(tac "$notes" | sed -n 's/^\([0-9]\{1,9\}\) \(moved\|begun\)$/\1/p'); do
            case ${state[$n]-} in
                moved|begun) ask "$n" "${old[$n]}" back; state[$n]=back ;;
            esac
        done ;;
    list)
        for n in "${!path[@]}"; do
            printf '%s\t%s\t%s\t%s\n' "$n" "${state[$n]-to do}" "${new[$n]}" "${path[$n]}"
        done ;;
    *) say "usage: bash $0 [move|undo|list]"; exit 2 ;;
esac
"""
