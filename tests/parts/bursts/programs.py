"""The part's daemon, as `tests/daemons/test_service.py` starts it."""

from __future__ import annotations

from pathlib import Path

from tarazu.config import Settings
from tarazu.parts.bursts.settings import options_of
from tarazu.sim.testbed.processes import free_port

PROGRAMS = {"burstd": ("tarazu.parts.bursts.burstd.service",)}


def settings(at: Path) -> str:
    """With all that it needs, below a site's directory."""
    return f"[part.bursts]\nstatistics = 'tcp://127.0.0.1:{free_port()}'\nsocket = '{at}/bursts.sock'\n"


def bound(settings: Settings) -> dict[str, str]:
    """Where it listens."""
    return {"burstd": options_of(settings).statistics}
