"""The part's daemon, as `tests/daemons/test_service.py` starts it."""

from __future__ import annotations

from pathlib import Path

from tarazu.config import Settings
from tarazu.parts.page.settings import options_of
from tarazu.sim.testbed.processes import free_port

PROGRAMS = {"page": ("tarazu.parts.page.service",)}


def settings(at: Path) -> str:
    return f"[part.page]\nlisten = '127.0.0.1:{free_port()}'\n"


def bound(settings: Settings) -> dict[str, str]:
    return {"page": options_of(settings).listen}
