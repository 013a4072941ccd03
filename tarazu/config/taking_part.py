"""Which jobs the site lets tarazu touch: its lists of users, projects, partitions, programs and directories.

`tarazu run` obeys them, and so does everybody who would have to take a user's word for it that he did: clientd, mdsd
and parts, each by its own settings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import cache
from typing import NamedTuple

from tarazu.config import users
from tarazu.config.sections import RunSettings


class Who(NamedTuple):
    """A job, as far as it is known."""

    uid: int
    user: str | None = ""
    """The name of `uid`; empty where it has none, None where it is not known whether it has one."""
    project: str = ""
    """The account that the batch system charges."""
    partition: str = ""
    """Or queue."""
    program: str = ""


def user_of(run: RunSettings, uid: int) -> str | None:
    """The user's name for `Who`, asked for where the lists need one only: a directory of users may hang."""
    return users.name_of(uid) if users.need_names(run.exclude_users, run.only_users) else ""


def why_not(run: RunSettings, who: Who) -> str:
    """Why the job is left alone; empty: it takes part. Exclusions go before `run.only_…`."""
    names = {who.user or "", str(who.uid)} - {""}
    if excluded := names.intersection(run.exclude_users):
        return f"run.exclude_users names {min(excluded)}"
    if who.user is None and users.need_names(run.exclude_users):
        return f"run.exclude_users: the directory of users does not say who uid {who.uid} is"
    if who.program and matches(run.exclude_programs, who.program):
        return f"run.exclude_programs names {who.program}"
    if not (run.only_users or run.only_projects or run.only_partitions):
        return ""
    taken = names.intersection(run.only_users)
    if taken or who.project in run.only_projects or who.partition in run.only_partitions:
        return ""
    return f"run.only_{_only(run)}: not one of them names this job"


def why_not_key(run: RunSettings, key: str) -> str:
    """Why a file of that path below the mount is left alone; as the library judges each file that is made."""
    if run.include and not matches(run.include, key):
        return "run.include does not name it"
    return "run.exclude names it" if matches(run.exclude, key) else ""


def matches(globs: Sequence[str], text: str) -> bool:
    """As fnmatch(3) without flags: `*` takes slashes too."""
    return any(_pattern(glob).fullmatch(text) for glob in globs)


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob))


def _only(run: RunSettings) -> str:
    return ", run.only_".join(
        name for name in ("users", "projects", "partitions") if getattr(run, f"only_{name}")
    )
