"""The files of settings: `tarazu.toml`, and those of `conf.d` beside it; and where in them something stands."""

from __future__ import annotations

import functools
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tarazu.errors import ConfigError

DEFAULT_FILE = Path("/etc/tarazu/tarazu.toml")
MORE = "conf.d"
"""Directory beside the file."""
LONGEST_BYTES = 1 << 20
"""A file that is larger was put there by mistake; each `tarazu run` reads all of them."""
OWN_PLACE = "{uid}"
"""In the paths of a user's own directories (`check.OWN_PATH`) his number; `%h` there is the node's name."""
_PLACE = r" \(at (?:line (\d+), column \d+|end of document)\)$"


def own_path(path: str, uid: int | None = None) -> Path:
    """The directory of a user, yours by default, on this node; a `~` is your home. Raises ConfigError without one."""
    number = os.getuid() if uid is None else uid
    own = Path(path.replace(OWN_PLACE, str(number)).replace("%h", os.uname().nodename))
    try:
        return own.expanduser()
    except RuntimeError:
        raise ConfigError(path, "$HOME, or a home directory where users are known", "neither") from None


class ConfigFile(NamedTuple):
    path: Path
    text: str
    tables: Mapping[str, Any]

    def place_of(self, section: str, name: str) -> str:
        """As `place`, of a setting, else of its section; fast, for each that is read."""
        at = _settings_at(self.text)
        number = at.get(f"{section}.{name}") or at.get(section)
        return f"{self.path}:{number}" if number else str(self.path)

    def place(self, pattern: str, section: str = "") -> str:
        """`/etc/tarazu/tarazu.toml:12`, the line where `pattern` first stands (below `[section]`)."""
        inside = not section
        for number, line in enumerate(self.text.splitlines(), 1):
            if section and (header := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line)):
                inside = header[1] == section
            if inside and re.match(rf"\s*(?:{pattern})", line):
                return f"{self.path}:{number}"
        return str(self.path)


@functools.cache
def _settings_at(text: str) -> dict[str, int]:
    """`mdsd.requests`, and `mdsd` → the first line where it stands."""
    lines: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line):
            section = header[1]
            lines.setdefault(section, number)
        elif setting := re.match(r"""\s*([\w."'-]+)\s*=""", line):
            name = setting[1].replace('"', "").replace("'", "")
            lines.setdefault(f"{section}.{name}".lstrip("."), number)
    return lines


def chosen(path: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> list[Path]:
    """`path`, else $TARAZU_CONFIG, else /etc/tarazu/tarazu.toml where it is; then `conf.d/*.toml` beside it, of a
    file of that name: another name is another daemon's, a second council's, which has its own settings alone.

    Raises ConfigError where that directory cannot be read.
    """
    first = Path(path or environ.get("TARAZU_CONFIG") or DEFAULT_FILE)
    paths = [first] if first != DEFAULT_FILE or first.exists() else []
    if first.name != DEFAULT_FILE.name:
        return paths
    try:
        names = sorted(
            entry.name
            for entry in os.scandir(first.parent / MORE)
            if entry.name.endswith(".toml") and not entry.name.startswith(".")
        )
    except (FileNotFoundError, NotADirectoryError):
        return paths
    except OSError as error:
        raise ConfigError(str(first.parent / MORE), "a readable directory", error.strerror) from None
    return [*paths, *(first.parent / MORE / name for name in names)]


def root() -> str:
    """Below which /proc and /sys are read: $TARAZU_ROOT, which a daemon's --root sets too; for tests and testbeds."""
    return os.environ.get("TARAZU_ROOT") or "/"


def read(path: Path) -> ConfigFile:
    """Raises ConfigError naming the file, and the line where it is no TOML."""
    try:
        text = _content(path).decode("utf-8")
    except OSError as error:
        raise ConfigError(str(path), "a readable configuration file", error.strerror) from None
    except UnicodeDecodeError:
        raise ConfigError(str(path), "a configuration file in UTF-8", "other bytes") from None
    text = text.replace("\r\n", "\n")
    import tomllib

    try:
        return ConfigFile(path, text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        place = re.search(_PLACE, said)
        line = (place and place[1]) or text.count("\n") + 1
        raise ConfigError(f"{path}:{line}", "TOML", said[: place.start()] if place else said) from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, lists in lists in lists …
        raise ConfigError(str(path), "TOML", str(error)) from None


def _content(path: Path) -> bytes:
    """Of a regular file: a pipe that nobody writes into would hold up every job that is started. What a shell hands
    over, `tarazu config check <(…)`, is read to its end.
    """
    handed_over = path.parts[:2] == ("/", "dev") and path.parts[2:3] != ("shm",)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if handed_over else os.O_NONBLOCK))
    with open(descriptor, "rb") as file:
        if not handed_over and not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ConfigError(str(path), "a configuration file", "a pipe or a device")
        content = file.read(LONGEST_BYTES + 1)
    if len(content) > LONGEST_BYTES:
        raise ConfigError(
            str(path), f"a configuration file of at most {LONGEST_BYTES >> 20} MiB", "a longer one"
        )
    return content


def value(text: str) -> Any:
    """One value as a file has it; the text itself where it is none."""
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
