"""The section of the part."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tarazu.config.check import SHARE, Check, one_of, setting

if TYPE_CHECKING:
    from dataclasses import dataclass as section
else:
    from tarazu.config.check import section


NAME = "tarazu-pool"
"""The daemon; below `state.directory`: what pools were is noted there before they are changed."""


@section(frozen=True)
class Pool:
    RELOADED = ("mode", "of", "floor")

    mode: str = setting(
        "observe",
        "tarazu-pool: observe: look; advise: change what people approve; apply: change all",
        one_of("observe", "advise", "apply"),
    )
    name: str = setting(
        "good",
        "the OST pool of good OSTs, in each file system",
        Check(
            "1 to 15 letters, digits, _ and -",
            lambda v: (
                re.fullmatch(r"[A-Za-z0-9_-]{1,15}", v) is not None and v not in ("none", "inherit", "ignore")
            ),
        ),
    )
    of: str = setting("", "the pool from which its OSTs are taken; empty: all OSTs, or those it had before")
    floor: float = setting(0.5, "share of those OSTs that always stays in it, however bad they are", SHARE)
