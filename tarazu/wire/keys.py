"""CURVE key pairs as files: who may talk to mdsd.

A directory holds `<role>.key` (secret, mode 0600) and `<role>.pub` (public, 0644) of three roles: `server`
(mdsd), `oss` (ossd) and `client` (clientd). mdsd needs `server.key`, `oss.pub` and `client.pub`; the others
need their own `.key` and `server.pub`. Further peers with keys of their own are admitted as
`oss-<anything>.pub` and `client-<anything>.pub`.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path
from typing import NamedTuple

import zmq

from tarazu.errors import WireError

ROLES = ("server", "oss", "client")

_FORMAT = "tarazu-key 1"
_Z85 = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")


class Key(NamedTuple):
    """One key in Z85; `secret` is None when it came from a public file."""

    role: str
    public: bytes
    secret: bytes | None = None

    def __repr__(self) -> str:
        """Without the secret, wherever it is printed."""
        return f"Key({self.role!r}, {self.public!r}{', secret' if self.secret else ''})"


def create(directory: str | Path, role: str, force: bool = False) -> tuple[Path, Path]:
    """Make a key pair; (secret file, public file).

    Each file appears complete or not at all. Raises WireError when one exists and `force` is not given, when
    the role is unknown, and when the directory cannot be written.
    """
    if role not in ROLES:
        raise WireError("key", "a role among " + ", ".join(ROLES), role)
    folder = Path(directory)
    paths = (folder / f"{role}.key", folder / f"{role}.pub")
    for path in paths:
        if path.exists() and not force:
            raise WireError(str(path), "no key there yet (or force)", "a file")
    public, secret = zmq.curve_keypair()
    head = f"# tarazu: {{}} key of role {role}\n{_FORMAT}\nrole = {role}\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        private_text = head.format("SECRET") + f"secret = {secret.decode()}\n"
        _write(paths[0], private_text, 0o600, force)
        _write(paths[1], head.format("public") + f"public = {public.decode()}\n", 0o644, force)
    except OSError as error:
        raise WireError(str(folder), "a directory where keys can be written", error.strerror) from None
    return paths


def load(path: str | Path) -> Key:
    """Read one key file. Raises WireError naming file, line and what was expected.

    A secret that others than owner and group can read is refused.
    """
    try:
        with open(path, encoding="ascii") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            lines = file.read(4096).splitlines()
    except OSError as error:
        raise WireError(str(path), "a readable key file", error.strerror) from None
    except UnicodeDecodeError:
        raise WireError(str(path), "a key file in ASCII", "other bytes") from None
    values = _parse(str(path), lines)
    if "secret" not in values:
        return Key(values["role"], values["public"].encode())
    if mode & 0o007:
        raise WireError(str(path), "a secret key that others cannot read (mode 0600)", f"mode {mode:04o}")
    secret = values["secret"].encode()
    return Key(values["role"], zmq.curve_public(secret), secret)


def _parse(where: str, lines: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    seen_format = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        at = f"{where}:{number}"
        if not text or text.startswith("#"):
            continue
        if not seen_format:
            if text != _FORMAT:
                raise WireError(at, f"`{_FORMAT}`", text[:20])
            seen_format = True
            continue
        name, _, value = (part.strip() for part in text.partition("="))
        if name == "role" and value not in ROLES:
            raise WireError(at, "a role among " + ", ".join(ROLES), value)
        # What stands in place of a secret is not repeated in a message.
        if name in ("secret", "public") and not _Z85.fullmatch(value):
            raise WireError(at, f"a {name} key of 40 Z85 characters", f"{len(value)} characters")
        if name not in ("role", "secret", "public"):
            raise WireError(at, "`role =`, `secret =` or `public =`", name[:20])
        values[name] = value
    if not seen_format:
        raise WireError(where, f"`{_FORMAT}` in the first line", "an empty file")
    if "role" not in values or ("secret" in values) == ("public" in values):
        raise WireError(where, "`role =` and either `secret =` or `public =`", ", ".join(values) or "neither")
    return values


def _write(path: Path, text: str, mode: int, replace: bool) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.rename(temporary, path)
        else:
            # Unlike rename, link never replaces what someone else just put there.
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
