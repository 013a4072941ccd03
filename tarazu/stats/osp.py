"""The state of the MDS's own connections to the OSTs: `osp.*.state`, `prealloc_status`, `max_create_count`, `active`,
and `lod.*.target_obd`.

For as long as precreated objects last the MDS goes on creating on the OSTs of a server that is gone, while `active`
stays 1; only `state` says so. A file is opened anew for each look: one that is held open would keep Lustre's modules
from being unloaded.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tarazu.stats import reading
from tarazu.stats.params import find, ost_target

HEALTHY = ("FULL", "IDLE")
"""States of a connection that is up. IDLE: given up for want of use, made again with the next request."""
REFRESH_S = 30.0
"""OSTs are added and taken away while a file system is up: so often the devices are listed anew."""
IN_TURN = 1500
"""Where there are more connections, only their states are read at each look, and the other parameters in turn."""
MAX_ERRNO = 4095
NOT_READY = ("EAGAIN", "ENODEV", "ENOTCONN")
"""`prealloc_status` while a connection is lost or has just been made: Lustre itself waits for an end of these."""
_STATE = re.compile(r"^current_state:\s*(\S+)", re.MULTILINE)
_TARGET_OBD = re.compile(r"(\d+):\s+(\S+)\s+(ACTIVE|INACTIVE)")
_WELL = tuple(b"current_state: %b\n" % state.encode() for state in HEALTHY)
"""As nearly all of them begin: these need no closer look."""
_SWITCHES = {
    "osp.*.max_create_count": "max_create_count 0",
    "lod.*.target_obd": "inactive",
    "osp.*.active": "inactive",
}
"""Parameter → the problem where it is 0, or says so."""
_BEGINNING = 128
"""Bytes of a file that are read: `state` goes on with up to 16 lines of history."""

Target = tuple[str, int]
"""(file system, OST index)."""


class TargetTrouble(NamedTuple):
    """The problems, at one moment. Targets of which nothing could be read are in none."""

    known: frozenset[Target]
    """Whose `state` was read: of these it is known that they are well, or not."""
    lost: Mapping[Target, str]
    """Target → state (CONNECTING, DISCONN, EVICTED, ...) of a connection that is not up, or `prealloc_status` of one
    that is not ready; of several MDTs' that of one, for what is created through that MDT would not come about."""
    full: frozenset[Target]
    refusing: Mapping[Target, str]
    """Target → which parameter says that no object is made there."""


NOTHING = TargetTrouble(frozenset(), {}, frozenset(), {})


def parse_state(text: str) -> str:
    """`FULL` of `current_state: FULL` (with the history behind it); empty for anything else."""
    match = _STATE.search(text)
    return match[1] if match else ""


def parse_prealloc_status(text: str) -> str:
    """Empty for 0: objects can be made ahead; else the error's name. Raises ValueError for anything else."""
    written = text.strip()
    code = int(written) if len(written) <= len(f"-{MAX_ERRNO}") else MAX_ERRNO + 1
    if abs(code) > MAX_ERRNO:
        raise ValueError(f"expected 0 or an error's number, found {written[:40]!r}")
    return errno.errorcode.get(abs(code), str(code)) if code else ""


def parse_target_obd(text: str) -> list[tuple[Target, bool]]:
    """(target, active) of every line such as `31: scratch-OST001f_UUID ACTIVE`."""
    rows = []
    for line in reading.lines(text):
        if (match := _TARGET_OBD.match(line.strip())) and (target := ost_target(match[2])):
            rows.append((target, match[3] == "ACTIVE"))
    return rows


class Osps:
    """The connections of the MDTs on this node. Elsewhere there are none, and no problems."""

    def __init__(self, root: str | Path = "/") -> None:
        self._root = root
        self._states: list[tuple[Target, str]] = []
        self._others: dict[str, list[tuple[Target | None, str]]] = {}
        """Parameter → files; those of `lod` tell of many targets each."""
        self._turn = 0
        self._said: dict[str, dict[Target, str]] = {}
        """The problems that the others showed when they were read last."""
        self._listed_s: float | None = None

    def look(self) -> TargetTrouble:
        """All states, and the other parameters: `IN_TURN`."""
        now = time.monotonic()
        if self._listed_s is None or now - self._listed_s >= REFRESH_S:
            self._list()
            self._listed_s = now
        known, lost = set(), {}
        for target, path in self._states:
            data = beginning(path)
            if data.startswith(_WELL):
                known.add(target)
            elif state := parse_state(data.decode("ascii", "replace")):
                known.add(target)
                if state not in HEALTHY:
                    lost[target] = state
        of_each = [name for name in self._others if name.startswith("osp.")]
        if of_each and len(self._states) > IN_TURN:
            self._turn = (self._turn + 1) % len(of_each)
            of_each = [of_each[self._turn]]
        for parameter in (*of_each, *(name for name in self._others if name.startswith("lod."))):
            self._read(parameter)
        full, refusing = set(), {}
        for target, error in self._said.get("osp.*.prealloc_status", {}).items():
            if error in NOT_READY:
                lost.setdefault(target, f"prealloc_status {error}")
            elif error == "ENOSPC":
                full.add(target)
            else:
                refusing[target] = f"prealloc_status {error}"
        for parameter in _SWITCHES:
            refusing |= self._said.get(parameter, {})
        for target in self._said.get("osp.*.active", {}):
            lost.pop(target, None)  # the administrator took it out
        return TargetTrouble(frozenset(known), lost, frozenset(full), refusing)

    def _list(self) -> None:
        self._states = _files(find(self._root, "osp.*.state"))
        self._others = {}
        for name in (*_SWITCHES, "osp.*.prealloc_status"):
            if name.startswith("lod"):
                self._others[name] = [(None, str(path)) for path in find(self._root, name).values()]
            else:
                self._others[name] = [*_files(find(self._root, name))]
        self._others = {name: files for name, files in self._others.items() if files}
        self._said = {name: said for name, said in self._said.items() if name in self._others}
        if self._listed_s is None and len(self._states) > IN_TURN:
            for name in self._others:
                self._read(name)

    def _read(self, parameter: str) -> None:
        amiss: dict[Target, str] = {}
        for target, path in self._others[parameter]:
            if target is None:
                amiss |= dict.fromkeys(_inactive(path), "inactive")
                continue
            said = beginning(path).decode("ascii", "replace")
            with contextlib.suppress(ValueError):
                if parameter not in _SWITCHES:
                    if error := parse_prealloc_status(said):
                        amiss[target] = error
                elif int(said) == 0:
                    amiss[target] = _SWITCHES[parameter]
        self._said[parameter] = amiss


def _inactive(path: str) -> list[Target]:
    try:
        text = reading.text(path)
    except (OSError, ValueError):
        return []
    return [target for target, active in parse_target_obd(text) if not active] if "INACTIVE" in text else []


def _files(paths: Mapping[str, Path]) -> list[tuple[Target, str]]:
    return [(target, str(path)) for device, path in paths.items() if (target := ost_target(device))]


def beginning(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _BEGINNING)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
