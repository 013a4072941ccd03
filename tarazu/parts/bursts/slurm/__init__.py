"""The plugin for Slurm, in Lua, that asks tarazu-burstd."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from tarazu.parts.bursts.settings import Bursts

Kind = Literal["job_submit", "library"]
KINDS: dict[Kind, str] = {
    "job_submit": "job_submit.lua, for slurmctld: JobSubmitPlugins=lua",
    "library": "what it is made of, for a site that has such a file: local tarazu = dofile(…)",
}

ANSWER_S = 0.02
"""Longest time that the plugin waits for an answer: slurmctld's other users wait with it."""


def plugin(kind: Kind, settings: Bursts, answer_s: float = ANSWER_S) -> str:
    """Its text, with the site's settings. Raises OSError where tarazu is not whole."""
    here = Path(__file__).parent
    text = (here / "bursts.lua").read_text()
    rest = "\nreturn tarazu\n" if kind == "library" else (here / f"{kind}.lua").read_text()
    settled = f"\ntarazu.socket = {_quoted(settings.socket)}\ntarazu.answer_s = {answer_s:.6f}\n"
    return text + settled + rest


def _quoted(text: str) -> str:
    """As Lua reads it."""
    return (
        '"' + "".join(c if (c.isascii() and c.isalnum()) or c in "/._-" else _escape(c) for c in text) + '"'
    )


def _escape(character: str) -> str:
    return "".join(f"\\{byte:03d}" for byte in character.encode())
