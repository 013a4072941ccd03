"""The part's daemons, as `tests/daemons/test_service.py` starts them."""

from __future__ import annotations

from pathlib import Path

from tarazu.config import Settings
from tarazu.parts.council.settings import options_of
from tarazu.sim.testbed.processes import free_port

PROGRAMS = {
    "council": ("tarazu.parts.council.service",),
    "announcer": ("tarazu.parts.council.announcer.start", "--kind", "client"),
}


def settings(at: Path) -> str:
    return f"[part.council]\naddress = 'tcp://127.0.0.1:{free_port()}'\n"


def bound(settings: Settings) -> dict[str, str]:
    return {"council": options_of(settings).address}
