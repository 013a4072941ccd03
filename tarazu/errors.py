"""What can go wrong, as one tree.

TarazuError                    anything tarazu refuses or fails at; exit status 1
├── BadInput                   a file, option, key or message is not what it must be; exit status 2
│   ├── ConfigError            the configuration file or an environment setting
│   ├── LayoutError            a layout, a PFL file or a `lustre.lov` blob
│   ├── TraceError             a spool, a run's history file or a Darshan log
│   ├── StoreError             the interaction database or a placement map
│   └── WireError              a message or a key of a peer
├── InfeasibleRequest          never: no state of this file system can satisfy it
├── InsufficientResources      not now: it may succeed when space or targets return
└── Unavailable                a peer (mdsd, clientd) did not answer in time
    └── Busy                   it answered: not now, ask again later

A message says where, what was expected and what was found, in one line.
"""

from __future__ import annotations


class TarazuError(Exception):
    """Root of the tree."""

    exit_status = 1


class BadInput(TarazuError):
    """Input that cannot be used: the message names the place, what was expected and what was found."""

    exit_status = 2

    def __init__(self, where: str, expected: str, found: object = None) -> None:
        self.where = where
        self.expected = expected
        self.found = found
        text = f"{where}: expected {expected}"
        if found is not None:
            shown = repr(found)
            text += f", found {shown if len(shown) <= 120 else shown[:117] + '...'}"
        super().__init__(text)

    def __reduce__(self) -> tuple[type[BadInput], tuple[str, str, object]]:
        """So that it comes whole out of another process."""
        return type(self), (self.where, self.expected, self.found)


class ConfigError(BadInput):
    """The configuration file or a setting in the environment."""


class LayoutError(BadInput):
    """A layout that Lustre would refuse, a malformed PFL file or a malformed `lustre.lov` blob."""


class TraceError(BadInput):
    """A malformed spool, history file or Darshan log."""


class StoreError(BadInput):
    """An unusable interaction database or placement map."""


class WireError(BadInput):
    """A malformed message, or an unusable key."""


class InfeasibleRequest(TarazuError):
    """Never: more distinct OSTs than the file system or the pool has, for example."""


class InsufficientResources(TarazuError):
    """Not now: the targets that could serve the request are full, stale or promised away."""


class Unavailable(TarazuError):
    """A peer did not answer in time."""


class Busy(Unavailable):
    """A peer has no room now; `retry_after_s` is when to ask again."""

    def __init__(self, text: str, retry_after_s: float = 1.0) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(text)
