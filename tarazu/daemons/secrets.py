"""What keeps a daemon's secrets its own: no dumps of its memory, no password where `ps` shows it."""

from __future__ import annotations

import contextlib
import logging
import os
import resource
from pathlib import Path
from urllib.parse import quote, urlsplit

from tarazu import config
from tarazu.config import files
from tarazu.errors import ConfigError

log = logging.getLogger("tarazu.daemons")

_PR_SET_DUMPABLE = 4
"""linux/prctl.h"""
MAX_PASSWORD_BYTES = 1024


def keep_memory_private() -> None:
    """No core file, and no look by other processes of the same user (ptrace, /proc/PID/mem, /proc/PID/environ)."""
    import ctypes

    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A core_pattern that is a pipe takes no notice of that limit; of this it does.
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        log.warning("the memory can be dumped: %s", os.strerror(ctypes.get_errno()))


def check_option(location: str | None) -> None:
    """Raises ConfigError for a database's password on the command line: every user of the node would see it."""
    if location and password_in(location):
        raise ConfigError(
            f"--database {config.without_password(location)}",
            "no password on the command line, which `ps` shows to everybody (clientd.password_file)",
        )


def with_password(settings: config.Settings, path: str | None = None) -> config.Settings:
    """The settings with the database's password from `clientd.password_file` in its location. Raises ConfigError."""
    location, file = settings.clientd.database, settings.clientd.password_file
    if not file:
        if password_in(location):
            for open_file in _holding(location, path):
                log.warning(
                    "%s: others can read the database's password: use clientd.password_file", open_file
                )
        return settings
    parts = urlsplit(location)
    if parts.scheme != "mysql" or not parts.username:
        raise ConfigError(
            "clientd.password_file",
            "clientd.database as mysql://user@host/name",
            config.without_password(location),
        )
    user, _, host = parts.netloc.rpartition("@")
    secret = quote(_password(Path(file)), safe="")
    netloc = f"{user.partition(':')[0]}:{secret}@{host}"
    return config.override(settings, "clientd", database=parts._replace(netloc=netloc).geturl())


def password_in(location: str) -> bool:
    return config.without_password(location) != location


def _password(path: Path) -> str:
    where = f"clientd.password_file {path}"
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MAX_PASSWORD_BYTES + 1)
    except OSError as error:
        raise ConfigError(where, "a readable file", error.strerror) from None
    except UnicodeDecodeError:
        raise ConfigError(where, "a password in UTF-8", "other bytes") from None
    if _others_read(path):
        raise ConfigError(where, "a file that others cannot read (mode 0600 or 0640)")
    secret = text.rstrip("\r\n")
    if not secret or "\n" in secret or len(text) > MAX_PASSWORD_BYTES:
        raise ConfigError(where, f"one line of at most {MAX_PASSWORD_BYTES} characters")
    return secret


def _holding(location: str, path: str | None) -> list[Path]:
    """Configuration files that others can read and that say this."""
    return [
        file
        for file in files.chosen(path, os.environ)
        if _others_read(file) and location in file.read_text(encoding="utf-8", errors="replace")
    ]


def _others_read(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & 0o007)
    except OSError:
        return False
