"""What surrounds mdsd's allocations: targets that the site excludes, each user's share of promises, and what of the
reports gets in.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tarazu.allocate.ledger import Ledger
from tarazu.daemons.allocating import promised_stripes
from tarazu.errors import ConfigError, LayoutError
from tarazu.layout.setstripe import unfold
from tarazu.model import SystemView
from tarazu.wire.messages import AllocationRequest, OssReport


class Exclusions:
    """`mdsd.exclude`: OSTs as `scratch:0-3,7`, pools as `scratch.flash`. Raises ConfigError for anything else."""

    def __init__(self, entries: Sequence[str]) -> None:
        self._osts: dict[str, set[int]] = {}
        self._pools: dict[str, set[str]] = {}
        for entry in entries:
            fs_name, colon, osts = entry.partition(":")
            pool_of, dot, pool = entry.partition(".")
            try:
                if colon and fs_name:
                    self._osts.setdefault(fs_name, set()).update(unfold(osts))
                elif dot and pool_of and pool:
                    self._pools.setdefault(pool_of, set()).add(pool)
                else:
                    raise LayoutError("", "")
            except LayoutError:
                raise ConfigError(
                    "mdsd.exclude", "entries such as scratch:0-3,7 or scratch.flash", entry
                ) from None

    def apply(self, view: SystemView) -> SystemView:
        """The view with the excluded targets marked as taking no new objects."""
        indices = self._osts.get(view.fs_name, set())
        pools = self._pools.get(view.fs_name, set())
        if not indices and not pools:
            return view
        osts = tuple(
            msgspec.structs.replace(o, no_create=True) if o.index in indices or pools & set(o.pools) else o
            for o in view.osts
        )
        return msgspec.structs.replace(view, osts=osts)


MAX_PROMISES = 100_000
MAX_PROMISES_OF_USER = 20_000
MAX_STRIPES = 10_000_000
MAX_STRIPES_OF_USER = 5_000_000
"""What the ledger holds at most: some 300 MB."""


class UserShare:
    """No user's promises may hold more than a share of what is free: a forged or forgotten plan blocks nobody.

    Nor may they fill mdsd's memory, one user's or all.
    """

    def __init__(self, share: float, ledger: Ledger) -> None:
        self.share = share
        self._ledger = ledger

    def refusal(self, request: AllocationRequest, view: SystemView) -> str:
        """Why this request would be too much; empty when it is not, or when nobody could have that much."""
        held = self._ledger.held_bytes(request.uid, request.fs_name)
        asked = sum(file.size_bytes for file in request.files)
        free = sum(o.avail_bytes for o in view.osts if o.usable)
        if held + asked > self.share * free and asked <= free:
            return (
                f"uid {request.uid} holds promises of {held} bytes and asks for {asked}: "
                f"expected at most {self.share:.0%} of the {free} that are free (mdsd.user_share)"
            )
        return self._too_many(request)

    def _too_many(self, request: AllocationRequest) -> str:
        stripes = promised_stripes(request)
        limits = (
            (f"uid {request.uid}", request.uid, MAX_PROMISES_OF_USER, MAX_STRIPES_OF_USER),
            ("all users together", None, MAX_PROMISES, MAX_STRIPES),
        )
        for who, uid, most, most_stripes in limits:
            held, held_stripes = self._ledger.numbers(uid)
            if held + 1 > most:
                return f"expected at most {most} promises of {who}, found {held} and one more"
            if held_stripes + stripes > most_stripes:
                return f"expected at most {most_stripes} promised stripes of {who}, found {held_stripes + stripes}"
        return ""


MAX_SERVERS = 4_096
MAX_FILE_SYSTEMS = 64
MAX_TARGETS = 32_768
MAX_NAME_CHARACTERS = 256
MAX_UNREADABLE = 1_000


class Door:
    """What of the reports gets in: names that nobody has must not fill the memory.

    What is known stays known until mdsd ends.
    """

    def __init__(self) -> None:
        self._servers: set[str] = set()
        self._targets: dict[str, set[int]] = {}

    def refusal(self, report: OssReport) -> str:
        """What was expected of this report; empty for one that may come in."""
        fs_names = {ost.fs_name for ost in report.osts}
        if max(map(len, (report.oss, *fs_names))) > MAX_NAME_CHARACTERS:
            return f"a report with names of at most {MAX_NAME_CHARACTERS} characters"
        if report.oss not in self._servers and len(self._servers) >= MAX_SERVERS:
            return f"a report of one of at most {MAX_SERVERS} servers"
        if len(self._targets.keys() | fs_names) > MAX_FILE_SYSTEMS:
            return f"a report of at most {MAX_FILE_SYSTEMS} file systems in all"
        new = {(o.fs_name, o.index) for o in report.osts if o.index not in self._targets.get(o.fs_name, ())}
        if sum(map(len, self._targets.values())) + len(new) > MAX_TARGETS:
            return f"a report of at most {MAX_TARGETS} targets in all"
        return ""

    def note(self, report: OssReport) -> None:
        """The report was taken in."""
        self._servers.add(report.oss)
        for ost in report.osts:
            self._targets.setdefault(ost.fs_name, set()).add(ost.index)

    @staticmethod
    def trimmed(report: OssReport) -> OssReport:
        """Without what nobody asks mdsd for: the jobs' rates, and a long list of what could not be read."""
        unreadable = tuple(name[:MAX_NAME_CHARACTERS] for name in report.unreadable[:MAX_UNREADABLE])
        return msgspec.structs.replace(report, jobs=(), unreadable=unreadable)
