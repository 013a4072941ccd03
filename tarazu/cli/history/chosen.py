"""Which runs the user means."""

from __future__ import annotations

import argparse
import os
import pwd
import re
from collections.abc import Iterator
from pathlib import Path

from tarazu import config
from tarazu.config import own_path
from tarazu.errors import BadInput, TarazuError
from tarazu.names import did_you_mean
from tarazu.trace.history import History


def history_of(options: argparse.Namespace) -> History:
    return History(own_path(config.load(options.config).run.history_dir))


def user_named(name: str) -> pwd.struct_passwd:
    """Raises BadInput."""
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise BadInput("--user", "the name of a user", name) from None


def home_of(directory: str, user: pwd.struct_passwd | None) -> Path:
    """A directory below somebody's home; None: yours. Raises BadInput where it may not be read."""
    if user is None:
        return own_path(directory)
    path = own_path(re.sub(r"^~(?=/|$)", lambda _: user.pw_dir, directory), user.pw_uid)
    if path.exists() and not os.access(path, os.R_OK | os.X_OK):
        raise BadInput(str(path), f"a directory of {user.pw_name}'s that may be read", "no permission")
    return path


def chosen(history: History, application: str | None, fs_name: str | None) -> list[tuple[str, str]]:
    """(file system, application) of all that is meant. Raises TarazuError for an application without runs."""
    known = history.applications()
    applications = [(fs, app) for fs, app in known if application in (None, app) and fs_name in (None, fs)]
    if not applications and (application or fs_name):
        shown = ", ".join(sorted({app for _, app in known})[:8]) or "none"
        on = f" on {fs_name}" if fs_name else ""
        meant = did_you_mean(application, {app for _, app in known}) if application else ""
        raise TarazuError(
            f"{application or 'history'}: expected runs{on} in {history.directory}, found {shown}{meant}"
        )
    return applications


def by_id(paths: Iterator[Path], run_id: str) -> Path:
    """The run of that id, of which any part will do that no other has. Raises TarazuError."""
    runs = [path for path in paths if run_id in path.stem]
    exact = [path for path in runs if path.stem == run_id]
    if len(exact or runs) != 1:
        shown = ", ".join(path.stem for path in runs[:4]) or "none"
        raise TarazuError(
            f"{run_id}: expected a part of the id of one run (`tarazu history list APP`), found {shown}"
        )
    return (exact or runs)[0]
