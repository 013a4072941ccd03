"""CURVE key pairs as files.

A directory holds `<role>.key` (secret, mode 0600) and `<role>.pub` (public, 0644) of three roles: `server`
(mdsd), `oss` (ossd) and `client` (clientd). mdsd needs `server.key`, `oss.pub` and `client.pub`; the others
need their own `.key` and `server.pub`. Further peers with keys of their own are admitted as
`oss-NAME.pub` and `client-NAME.pub` (`tarazu.wire.admission`); on their node the secret is `oss.key` or `client.key`.
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

NAME = re.compile(r"\w[\w.-]{0,63}", re.ASCII)
"""Of a further key: `login1` in `client-login1.pub`."""

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


def create(directory: str | Path, role: str, force: bool = False, *, name: str = "") -> tuple[Path, Path]:
    """Make a key pair, `<role>[-<name>].key` and `.pub`; (secret file, public file).

    Each file appears complete or not at all. Raises WireError when one exists and `force` is not given, when
    the role is unknown or the name is none, and when the directory cannot be written.
    """
    if role not in ROLES:
        raise WireError("key", "a role among " + ", ".join(ROLES), role)
    if name and not NAME.fullmatch(name):
        raise WireError("key", "a name of letters, digits, `.`, `_` and `-`", name)
    folder, stem = Path(directory), f"{role}-{name}" if name else role
    paths = (folder / f"{stem}.key", folder / f"{stem}.pub")
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


def write_list(directory: str | Path, name: str, text: str, force: bool = False) -> Path:
    """A list beside the keys. Raises WireError when there is one and `force` is not given, or it cannot be written."""
    path = Path(directory) / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, text.strip() + "\n", 0o644, force)
    except FileExistsError:
        raise WireError(str(path), "no list there yet (or force)", "a file") from None
    except (OSError, UnicodeEncodeError) as error:
        found = getattr(error, "strerror", "text that is not ASCII")
        raise WireError(str(path), "a list that can be written", found) from None
    return path


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
        if name in ("secret", "public") and not _is_key(value):
            raise WireError(at, f"a {name} key of 40 Z85 characters", f"{len(value)} characters")
        if name not in ("role", "secret", "public"):
            raise WireError(at, "`role =`, `secret =` or `public =`", name[:20])
        values[name] = value
    if not seen_format:
        raise WireError(where, f"`{_FORMAT}` in the first line", "an empty file")
    if "role" not in values or ("secret" in values) == ("public" in values):
        raise WireError(where, "`role =` and either `secret =` or `public =`", ", ".join(values) or "neither")
    return values


def _is_key(text: str) -> bool:
    """Five characters of Z85 can say more than four bytes hold: ZeroMQ refuses those, which the alphabet allows."""
    if not _Z85.fullmatch(text):
        return False
    try:
        zmq.curve_public(text.encode())
    except zmq.ZMQError:
        return False
    return True


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
