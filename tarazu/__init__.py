"""tarazu balances I/O on Lustre, from the application's open() to the disk.

The public face: what a script or a notebook needs. Names are imported when they are first used, so that a
daemon loads only its own rooms.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
import typing
from typing import Any


def _quoted(path: bytes) -> str:
    from urllib.parse import quote_from_bytes

    return quote_from_bytes(path)


_stand_ins: dict[str, Any] = {
    # msgspec asks it for names that typing has as well, and it takes as long to import as Python's own start.
    "typing_extensions": typing,
    # uuid, which msgspec needs, asks it for the system's name, and it takes a tenth of that; so does the next one,
    # of which pathlib has a function that hardly anybody calls.
    "platform": types.SimpleNamespace(system=lambda: os.uname().sysname),
    "urllib.parse": types.SimpleNamespace(quote_from_bytes=_quoted),
}
_stand_ins = {name: module for name, module in _stand_ins.items() if name not in sys.modules}
sys.modules.update(_stand_ins)
try:
    import pathlib  # noqa: F401

    import msgspec  # noqa: F401
finally:
    for _name in _stand_ins:
        del sys.modules[_name]

_HOME = {
    "Allocation": "model",
    "Component": "model",
    "CreateRequest": "model",
    "EOF": "lustre",
    "FilePlacement": "model",
    "Forecast": "model",
    "JobStep": "model",
    "Layout": "model",
    "Oss": "model",
    "Ost": "model",
    "SystemView": "model",
    "TarazuError": "errors",
    "BadInput": "errors",
    "InfeasibleRequest": "errors",
    "InsufficientResources": "errors",
    "Unavailable": "errors",
    "load_config": "config:load",
    "parse_layout": "layout.setstripe:parse_layout",
    "format_layout": "layout.setstripe:format_layout",
    "Allocator": "allocate.pipeline:Tarazu",
    "forecast": "predict.aipa:forecast",
    "History": "trace.history:History",
    "import_darshan": "trace.darshan_runs:import_log",
    "open_database": "store.database:open_database",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'tarazu' has no attribute {name!r}")
    module, _, attribute = home.partition(":")
    return getattr(importlib.import_module(f"tarazu.{module}"), attribute or name)


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
