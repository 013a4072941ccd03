"""What mdsd knows of MDTs, for commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tarazu.config import Settings
from tarazu.daemons.asking import status_of
from tarazu.errors import BadInput, Unavailable
from tarazu.malformed import MALFORMED
from tarazu.parts.mdt.model import Mdt


def mdts_of(settings: Settings, fs_name: str) -> tuple[Mdt, ...]:
    """Of one file system, by index. Raises Unavailable when neither clientd nor mdsd answers."""
    mdsd = status_of(settings)["mdsd"]
    if "unavailable" in mdsd:
        raise Unavailable(f"mdsd: {mdsd['unavailable']}")
    return _of(mdsd, fs_name, "mdsd")


def mdts_in(path: str, fs_name: str) -> tuple[Mdt, ...]:
    """The same of a file that has what `tarazu status --json` printed. Raises BadInput."""
    try:
        found = msgspec.json.decode(Path(path).read_bytes())
    except OSError as error:
        raise BadInput(path, "a readable file", error.strerror) from None
    except MALFORMED as error:
        raise BadInput(path, "the output of `tarazu status --json`", str(error)) from None
    mdsd = found.get("mdsd") if isinstance(found, dict) else None
    return _of(mdsd, fs_name, path) if isinstance(mdsd, dict) else ()


def _of(mdsd: Mapping[str, Any], fs_name: str, where: str) -> tuple[Mdt, ...]:
    parts = mdsd.get("parts")
    own = parts.get("mdt") if isinstance(parts, dict) else None
    known = own.get("file_systems", {}) if isinstance(own, dict) else {}
    try:
        return msgspec.convert(known.get(fs_name, ()), tuple[Mdt, ...])
    except (msgspec.ValidationError, AttributeError) as error:
        raise BadInput(where, "MDTs as `tarazu status --json` prints them", str(error)) from None
