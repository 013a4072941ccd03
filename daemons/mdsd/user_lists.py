"""mdsd's own look at the site's lists of users: a client's word is not needed for whom they name.

Names are looked up once, when the settings are read: nothing that is asked for waits for a directory of users. A name
that this node does not know, or not within seconds, is a line in the log, and clientd's alone to obey.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from tarazu.config import RunSettings
from tarazu.config.users import uid_of

log = logging.getLogger("tarazu.mdsd")

LOOK_UP_S = 5.0
"""For all names of a list: mdsd answers nobody meanwhile."""


class UserLists:
    def __init__(self, run: RunSettings) -> None:
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
    """(uids of users given by name or number, names without one). All of them together are not waited for long."""
    found, unknown = set(), []
    until_s = time.monotonic() + LOOK_UP_S
    for name in names:
        number = int(name) if name.isdecimal() else uid_of(name, max(0.0, until_s - time.monotonic()))
        if number is None:
            unknown.append(name)
        else:
            found.add(number)
    return frozenset(found), unknown
