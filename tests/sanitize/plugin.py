"""pytest plugin: the tests' programs get the library that TARAZU_SANITIZED names instead of the installed one."""

from __future__ import annotations

import os
from pathlib import Path

from tarazu import built

_installed = built.library_path


def _library_path(name: str) -> Path:
    return Path(os.environ["TARAZU_SANITIZED"]) if name == "libtarazu.so" else _installed(name)


built.library_path = _library_path
