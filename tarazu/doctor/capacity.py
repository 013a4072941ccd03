"""Space where the daemons keep their state, the database, and the limits of processes."""

from __future__ import annotations

import os
import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from tarazu.doctor.node import AS_ROOT, Finding, Node, fail, ok, skip, warn
from tarazu.part import setting_agents
from tarazu.store import schema
from tarazu.store.sqlite import UNREADABLE
from tarazu.units import human_bytes

LEAST_BYTES, LEAST_SHARE = 256 << 20, 0.05
ADDRESS_BYTES = 2 << 30
FILES = 1024


def look(node: Node) -> Iterator[Finding]:
    s = node.settings
    for name, value in (
        ("tarazu-mdsd state", s.state.mdsd),
        ("mdsd.audit_log", s.mdsd.audit_log and str(Path(s.mdsd.audit_log).parent)),
        *((f"{of.daemon} state", of.place(s)) for of in setting_agents().values() if of.daemon),
    ):
        if value:
            yield from space(name, Path(value))
    if "launch" in node.roles:
        yield from _database(s.clientd.database)
        yield from _limits()


def space(name: str, directory: Path) -> Iterator[Finding]:
    """Of a directory of a daemon's."""
    try:
        space = os.statvfs(directory)
    except FileNotFoundError:
        return  # nothing of that daemon is on this node
    except PermissionError:
        yield skip(name, f"this user cannot read {directory}", AS_ROOT)
        return
    except OSError as error:
        yield fail(name, f"{directory}: {error.strerror}", "repair or replace the file system")
        return
    free, total = space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize
    if space.f_flag & os.ST_RDONLY:
        yield fail(name, f"the file system of {directory} is read-only", "mount it writable")
    elif free < LEAST_BYTES and free < LEAST_SHARE * total:
        yield warn(
            name,
            f"{human_bytes(free)} free for {directory}",
            "free some space: without it the daemon stops changing things",
        )
    else:
        yield ok(name, f"{directory}, {human_bytes(free)} free")


def _database(location: str) -> Iterator[Finding]:
    """Looked at without opening it for writing, nor creating it."""
    if "://" in location:
        yield skip("clientd.database", "on a database server: `tarazu history db` asks it")
        return
    path = Path(location)
    try:
        if not path.exists():
            yield ok("clientd.database", f"{path} does not exist yet: clientd creates it")
            return
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
        try:
            owner = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
        finally:
            connection.close()
    except (PermissionError, sqlite3.OperationalError) as error:
        yield skip("clientd.database", f"{path}: {error}", AS_ROOT)
        return
    except UNREADABLE as error:
        yield fail("clientd.database", f"{path}: {error}", "move it away: clientd creates a new one")
        return
    if owner not in (0, schema.APPLICATION_ID):
        yield fail(
            "clientd.database",
            f"{path} is not an interaction database",
            "set clientd.database to another file",
        )
    elif owner and version != schema.VERSION:
        text = f"{path} has schema {version}; this tarazu knows {schema.VERSION}"
        yield fail("clientd.database", text, "set clientd.database to another file")
    else:
        yield ok("clientd.database", f"{path}, schema {version}")


def _limits() -> Iterator[Finding]:
    """Of the user who looks: those of his jobs are the batch system's."""
    files, address = (resource.getrlimit(n)[0] for n in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS))
    wrong = []
    if 0 <= files < FILES:
        wrong.append(f"{files} open files (ulimit -n)")
    if 0 <= address < ADDRESS_BYTES:
        wrong.append(f"{human_bytes(address)} of addresses (ulimit -v)")
    if wrong:
        yield warn("limits", ", ".join(wrong), "raise them in /etc/security/limits.d or the batch system")
    else:
        yield ok("limits", f"{files} open files")
