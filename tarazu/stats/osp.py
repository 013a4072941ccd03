"""How the MDS's own connections to the OSTs are, now: `osp.*.state`, `prealloc_status`, `max_create_count`, `active`.

For as long as precreated objects last the MDS goes on creating on the OSTs of a server that is gone, while `active`
stays 1; only `state` says so. A file is opened anew for each look: one that is held open would keep Lustre's modules
from being unloaded.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tarazu.stats.params import find, ost_target

HEALTHY = ("FULL", "IDLE")
"""States of a connection that is up. IDLE: given up for want of use, made again with the next request."""
REFRESH_S = 30.0
"""OSTs are added and taken away while a file system is up: so often the devices are listed anew."""
IN_TURN = 1500
"""Where there are more connections, only their states are read at each look, and the other parameters in turn."""
ENOSPC = 28
_STATE = re.compile(r"^current_state:\s*(\S+)", re.MULTILINE)
_WELL = tuple(b"current_state: %b\n" % state.encode() for state in HEALTHY)
"""As nearly all of them begin: these need no closer look."""
_BEGINNING = 128
"""Bytes of a file that are read: `state` goes on with up to 16 lines of history."""

Target = tuple[str, int]
"""(file system, OST index)."""


class Seen(NamedTuple):
    """What is amiss, at one moment. Targets of which nothing could be read are in none."""

    known: frozenset[Target]
    """Whose `state` was read: of these it is known that they are well, or not."""
    lost: Mapping[Target, str]
    """Target → state (CONNECTING, DISCONN, EVICTED, ...) of a connection that is not up; of several MDTs' that of
    one, for what is created through that MDT would not come about."""
    full: frozenset[Target]
    refusing: Mapping[Target, str]
    """Target → which parameter says that no object is made there."""


NOTHING = Seen(frozenset(), {}, frozenset(), {})


def parse_state(text: str) -> str:
    """`FULL` of `current_state: FULL` (with the history behind it); empty for anything else."""
    match = _STATE.search(text)
    return match[1] if match else ""


class Osps:
    """The connections of the MDTs on this node. Elsewhere there are none, and nothing is ever amiss."""

    def __init__(self, root: str | Path = "/") -> None:
        self._root = root
        self._states: list[tuple[Target, str]] = []
        self._others: dict[str, list[tuple[Target, str]]] = {}
        """Parameter → files."""
        self._turn = 0
        self._said: dict[str, dict[Target, int]] = {}
        """What the others said when they were read last, where it was amiss."""
        self._listed_s: float | None = None

    def look(self) -> Seen:
        """All states, and the other parameters: `IN_TURN`."""
        now = time.monotonic()
        if self._listed_s is None or now - self._listed_s >= REFRESH_S:
            self._list()
            self._listed_s = now
        known, lost = set(), {}
        for target, path in self._states:
            data = _beginning(path)
            if data.startswith(_WELL):
                known.add(target)
            elif state := parse_state(data.decode("ascii", "replace")):
                known.add(target)
                if state not in HEALTHY:
                    lost[target] = state
        parameters = sorted(self._others)
        if parameters and len(self._states) > IN_TURN:
            self._turn = (self._turn + 1) % len(parameters)
            parameters = [parameters[self._turn]]
        for parameter in parameters:
            self._read(parameter)
        prealloc = self._said.get("osp.*.prealloc_status", {})
        refusing = {t: f"prealloc_status {value}" for t, value in prealloc.items() if abs(value) != ENOSPC}
        refusing |= dict.fromkeys(self._said.get("osp.*.max_create_count", {}), "max_create_count 0")
        refusing |= dict.fromkeys(self._said.get("osp.*.active", {}), "inactive")
        full = frozenset(t for t, value in prealloc.items() if abs(value) == ENOSPC)
        return Seen(frozenset(known), lost, full, refusing)

    def _list(self) -> None:
        self._states = _files(self._root, "osp.*.state")
        names = ("osp.*.active", "osp.*.max_create_count", "osp.*.prealloc_status")
        self._others = {name: files for name in names if (files := _files(self._root, name))}
        self._said = {name: said for name, said in self._said.items() if name in self._others}
        if self._listed_s is None and len(self._states) > IN_TURN:
            for name in self._others:
                self._read(name)

    def _read(self, parameter: str) -> None:
        """`prealloc_status` is amiss when it is not 0, the others when they are."""
        amiss: dict[Target, int] = {}
        for target, path in self._others[parameter]:
            try:
                value = int(_beginning(path))
            except ValueError:
                continue
            if (value != 0) == (parameter == "osp.*.prealloc_status"):
                amiss[target] = value
        self._said[parameter] = amiss


def _files(root: str | Path, parameter: str) -> list[tuple[Target, str]]:
    found = find(root, parameter).items()
    return [(target, str(path)) for device, path in found if (target := ost_target(device))]


def _beginning(path: str) -> bytes:
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
