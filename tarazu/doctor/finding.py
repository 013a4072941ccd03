"""What one check found, how bad it is, and how to mend it."""

from __future__ import annotations

from typing import Literal

import msgspec

Verdict = Literal["ok", "warn", "fail", "skip"]
"""`warn`: it works, with less than it could, or may soon not; `fail`: something here does not work; `skip`: it could
not be looked at, or does not concern this node.
"""


class Finding(msgspec.Struct, frozen=True):
    check: str
    """What was looked at: `client.key`."""
    verdict: Verdict
    found: str
    mend: str = ""
    """What to do; for `skip` what it would take to see it."""
    topic: str = ""


def ok(check: str, found: str) -> Finding:
    return Finding(check, "ok", found)


def warn(check: str, found: str, mend: str) -> Finding:
    return Finding(check, "warn", found, mend)


def fail(check: str, found: str, mend: str) -> Finding:
    return Finding(check, "fail", found, mend)


def skip(check: str, found: str, mend: str = "") -> Finding:
    return Finding(check, "skip", found, mend)


AS_ROOT = "run it as root"
"""The `mend` of what only root can see."""
