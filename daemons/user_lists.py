"""mdsd's own look at the site's lists of users: a client's word is not needed for whom they name.

Names are looked up once, when the settings are read: nothing that is asked for waits for a directory of users. A name
that this node does not know is a line in the log, and clientd's alone to obey.
"""

from __future__ import annotations

import logging
import pwd
from collections.abc import Sequence

from tarazu.config import Run

log = logging.getLogger("tarazu.mdsd")


class UserLists:
    def __init__(self, run: Run) -> None:
        self._excluded, unknown = uids(run.exclude_users)
        self._only: frozenset[int] | None = None
        if run.only_users and not (run.only_projects or run.only_partitions):
            only, others = uids(run.only_users)
            # Of whom we know no number, we cannot say that he is not the one who asks.
            self._only = None if others else only
            unknown += others
        if unknown:
            log.warning(
                "run.exclude_users, run.only_users: users that this node does not know: %s",
                ", ".join(unknown),
            )

    def why_not(self, uid: int) -> str:
        """Why this user's jobs are left alone; empty: they are not."""
        if uid in self._excluded:
            return f"run.exclude_users names uid {uid}"
        if self._only is not None and uid not in self._only:
            return f"run.only_users does not name uid {uid}"
        return ""


def uids(names: Sequence[str]) -> tuple[frozenset[int], list[str]]:
    """(uids of users given by name or number, names without one)."""
    found, unknown = set(), []
    for name in names:
        if name.isdecimal():
            found.add(int(name))
            continue
        try:
            found.add(pwd.getpwnam(name).pw_uid)
        except KeyError:
            unknown.append(name)
    return frozenset(found), unknown
