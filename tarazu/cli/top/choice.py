"""What of the system is shown, and how; which key changes what. Keys that ltop has too mean what they mean there."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal, get_args

Sort = Literal["verdict", "target", "oss", "used", "promised", "read", "write", "latency", "speed", "age"]
Fold = Literal["ost", "oss", "fs", "pool"]
SORTS: tuple[Sort, ...] = get_args(Sort)
FOLDS: tuple[Fold, ...] = get_args(Fold)

SORT_KEYS: dict[str, Sort] = {
    "v": "verdict",
    "t": "target",
    "s": "oss",
    "u": "used",
    "m": "promised",
    "r": "read",
    "w": "write",
    "l": "latency",
    "e": "speed",
    "g": "age",
}
HELP = """\
sort    v verdict, worst first   t target   s OSS   u used   m promised
        w write   r read   l ms/IO   e speed   g age   R the other way round
fold    c a line for each OST, OSS, file system, pool in turn
show    a only problems   f the next file system   / filter   Esc no filter
        words that all must hold: oss3 sick   OST00   pool=flash   used>90
move    Up Down j k   PageUp PageDown Ctrl-U Ctrl-D   Home End
else    p pause   space look at once   ? this help   q quit

%used   of the space                  prom.  promised to running job steps
wMB/s   rMB/s  of its server's last interval;   ms/IO  mean time of an I/O in it
speed   of its peers', by the time that I/Os take: 1/4 takes four times as long;
        -: nothing reliable was seen
age     seconds since its server's last report"""


@dataclass(frozen=True)
class TopChoice:
    sort: Sort = "verdict"
    backwards: bool = False
    fold: Fold = "ost"
    fs_name: str = ""
    """Empty: all."""
    filter: str = ""
    amiss: bool = False
    """Only rows that are neither ok nor busy."""
    first: int = 0
    """Rows above the screen's first one."""
    help: bool = False
    typing: str | None = None
    """The filter that is being typed."""
    paused: bool = False


def press(
    choice: TopChoice, key: str, rows: int, page: int, fs_names: tuple[str, ...] = ()
) -> TopChoice | None:
    """What is shown after a key; None: nothing more. `rows`: of all, `page`: of them on the screen.

    `key`: a character, or a name such as `down`, `page-up`, `enter`; unknown ones change nothing.
    """
    if choice.typing is not None:
        return _typed(choice, choice.typing, key)
    if choice.help:
        return None if key in ("q", "Q") else dataclasses.replace(choice, help=False)
    moved = {
        "down": choice.first + 1,
        "j": choice.first + 1,
        "up": choice.first - 1,
        "k": choice.first - 1,
        "page-down": choice.first + page,
        "\x04": choice.first + page,
        "page-up": choice.first - page,
        "\x15": choice.first - page,
        "home": 0,
        "end": rows,
    }
    if key in moved:
        return dataclasses.replace(choice, first=max(0, min(moved[key], rows - page)))
    if key in SORT_KEYS:
        return dataclasses.replace(choice, sort=SORT_KEYS[key], backwards=False, first=0)
    if key == "f":
        known = ("", *fs_names)
        here = known.index(choice.fs_name) if choice.fs_name in known else 0
        return dataclasses.replace(choice, fs_name=known[(here + 1) % len(known)], first=0)
    if key == "c":
        fold = FOLDS[(FOLDS.index(choice.fold) + 1) % len(FOLDS)]
        return dataclasses.replace(choice, fold=fold, first=0)
    if key == "R":
        return dataclasses.replace(choice, backwards=not choice.backwards, first=0)
    if key == "a":
        return dataclasses.replace(choice, amiss=not choice.amiss, first=0)
    if key == "p":
        return dataclasses.replace(choice, paused=not choice.paused)
    if key == "/":
        return dataclasses.replace(choice, typing=choice.filter)
    if key == "escape":
        return dataclasses.replace(choice, filter="", first=0)
    if key in ("?", "h"):
        return dataclasses.replace(choice, help=True)
    return None if key in ("q", "Q", "\x03") else choice


def _typed(choice: TopChoice, text: str, key: str) -> TopChoice:
    if key == "enter":
        return dataclasses.replace(choice, filter=text.strip(), typing=None, first=0)
    if key in ("escape", "\x03"):
        return dataclasses.replace(choice, typing=None)
    if key in ("backspace", "\x7f", "\b"):
        return dataclasses.replace(choice, typing=text[:-1])
    if key == "\x15":
        return dataclasses.replace(choice, typing="")
    if len(key) == 1 and key.isprintable():
        return dataclasses.replace(choice, typing=text + key)
    return choice
