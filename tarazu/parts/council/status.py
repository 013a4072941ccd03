"""What `tarazu status` says of parameters that learn: whether this node has the council."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tarazu.config import Settings
from tarazu.errors import TarazuError
from tarazu.parts.council.settings import council_of


def told(settings: Settings) -> dict[str, Any]:
    """Nothing to users, who may not look."""
    if not os.access(council_of(settings), os.W_OK):
        return {}
    from tarazu.parts.council.here import here

    try:
        council = here(settings)
    except TarazuError as error:
        return {"problem": str(error)}
    return {"mode": council.mode, "why": council.why} if council else {}


def lines(here: Mapping[str, Any]) -> list[str]:
    """The same as lines."""
    if problem := here.get("problem"):
        return [f"parameters that learn: cannot tell what the council decides: {problem}"]
    return [f"this node has a council of parameters that learn: {here['mode']} ({here['why']})"]
