"""Are the keys of this node's roles there, whose are they, who can read them, and do they belong together?"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tarazu.doctor.node import AS_ROOT, DAEMON_USER, Finding, Node, fail, ok, skip, warn
from tarazu.errors import WireError
from tarazu.wire import admission, keys
from tarazu.wire.security import is_local

NEEDED = {
    "oss": ("oss.key", "server.pub"),
    "router": ("oss.key", "server.pub"),
    "launch": ("client.key", "server.pub"),
    "mdsd": ("server.key", "oss.pub", "client.pub"),
}


def look(node: Node) -> Iterator[Finding]:
    directory = Path(node.settings.keys.directory)
    if node.settings.keys.insecure:
        yield warn(
            "keys.insecure",
            "true: everyone who reaches a port may ask and report",
            "keys.insecure = false, then tarazu config keys create",
        )
    try:
        there = sorted(p.name for p in directory.iterdir()) if directory.exists() else []
    except PermissionError:
        yield skip("keys", f"this user cannot read {directory}", AS_ROOT)
        return
    needed = {name for role, names in NEEDED.items() if role in node.roles for name in names}
    if not any(name.endswith((".key", ".pub")) for name in there):
        yield _none(node, directory)
        return
    for name in sorted(needed - set(there)):
        # Of the further keys one is enough: whoever revoked `client` has client-NAME.pub.
        if name in ("oss.pub", "client.pub") and any(
            n.startswith(f"{name[:-4]}-") and n.endswith(".pub") for n in there
        ):
            continue
        yield fail(
            name, f"not in {directory}", "copy it from the node where you ran `tarazu config keys create`"
        )
    for name in there:
        if name.endswith(".key"):
            yield from _secret(node, directory / name, name in needed)
        elif name.endswith(".pub"):
            yield from _public(directory / name)
    if "mdsd" in node.roles and (directory / "server.key").exists():
        yield from _lists(directory)


def _none(node: Node, directory: Path) -> Finding:
    s = node.settings
    outside = [a for a in (*s.statistics(), *s.requests()) if not is_local(a)]
    if outside and not s.keys.insecure:
        return fail("keys", f"no keys in {directory}; {outside[0]} needs them", "tarazu config keys create")
    return ok(
        "keys",
        "none needed: all addresses are loopback" if not outside else "none, because keys.insecure is true",
    )


def _secret(node: Node, path: Path, is_needed: bool) -> Iterator[Finding]:
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o007:
        yield fail(path.name, f"mode {mode:04o}: other users can read it", f"chmod 600 {path}")
        return
    try:
        key = keys.load(path)
    except WireError as error:
        if not os.access(path, os.R_OK, effective_ids=True):
            yield skip(path.name, "this user cannot read it", AS_ROOT)
        else:
            yield fail(
                path.name, str(error), "tarazu config keys create --force, then copy the keys to every node"
            )
        return
    pair = path.with_suffix(".pub")
    if pair.exists():
        try:
            other = keys.load(pair).public
        except WireError:
            return  # said of the public key itself
        if other != key.public:
            mend = f"copy {pair.name} from the node that made this key"
            yield fail(path.name, f"does not belong to {pair.name}", mend)
            return
    elif "-" in path.stem:
        yield warn(
            path.name,
            f"{pair.name} is missing: the key was revoked here, or never admitted",
            f"remove {path} if it is not used",
        )
        return
    if is_needed and (problem := _closed(node, status)):
        yield fail(path.name, problem, f"chown {DAEMON_USER}: {path}")
    else:
        yield ok(path.name, f"role {key.role}, mode {mode:04o}")


def _closed(node: Node, found: os.stat_result) -> str:
    """Why tarazu's user cannot read it (a daemon may have no capability); empty when it can, or there is none."""
    if node.daemon_ids is None:
        return ""
    uid, gid = node.daemon_ids
    if (found.st_uid == uid and found.st_mode & 0o400) or (found.st_gid == gid and found.st_mode & 0o040):
        return ""
    return (
        f"owned by uid {found.st_uid}, mode {stat.S_IMODE(found.st_mode):04o}: {DAEMON_USER} cannot read it"
    )


def _public(path: Path) -> Iterator[Finding]:
    try:
        keys.load(path)
    except WireError as error:
        yield fail(path.name, str(error), "copy it again")
        return
    if path.stat().st_mode & 0o002:
        yield fail(path.name, "every user can write it, so mdsd ignores it", f"chmod 644 {path}")


def _lists(directory: Path) -> Iterator[Finding]:
    try:
        admission.check(directory)
    except WireError as error:
        yield fail("admitted keys", str(error), "tarazu config keys list shows the mistake")
        return
    public = sorted(p.stem for p in directory.glob("*.pub") if p.stem != "server")
    yield ok(
        "admitted keys", ", ".join(public[:8]) + (f" and {len(public) - 8} more" if len(public) > 8 else "")
    )
