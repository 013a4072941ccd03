"""Plugins and scripts for Slurm.

The plugins, in Lua, ask tarazu-burstd (`tarazu change bursts plugin` prints them); the scripts for the tasks' prolog
and the nodes' epilog are printed by `tarazu history gather --print`.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Literal

from tarazu import built, config
from tarazu.errors import TarazuError
from tarazu.run.nodes.gather import EMIT
from tarazu.trusted import ENTER

Kind = Literal["job_submit", "cli_filter", "library"]
KINDS: dict[Kind, str] = {
    "job_submit": "job_submit.lua, for slurmctld: JobSubmitPlugins=lua",
    "cli_filter": "cli_filter.lua, for who submits: CliFilterPlugins=lua",
    "library": "what both are made of, for a site that has such a file: local tarazu = dofile(…)",
}

ANSWER_S = 0.02
"""Longest time that the plugin waits for an answer: slurmctld's other users wait with it."""
SCRIPTS = ("task_prolog", "node_epilog")
EPILOG_S = 15
"""An Epilog may take so long: until it has ended its node runs no other job."""
MOST_KIB = 2 << 20
"""Of one step, from one node."""
KEPT_KIB, KEPT_STEPS, KEPT_DAYS = 256 << 10, 500, 30
"""Of a user, in his own directory, until `tarazu history gather` takes it: what is beyond goes, the oldest first."""


def plugin(kind: Kind, settings: config.Bursts, answer_s: float = ANSWER_S) -> str:
    """Its text, with the site's settings. Raises OSError where tarazu is not whole."""
    here = Path(__file__).parent
    text = (here / "bursts.lua").read_text()
    rest = "\nreturn tarazu\n" if kind == "library" else (here / f"{kind}.lua").read_text()
    settled = f"\ntarazu.socket = {_quoted(settings.socket)}\ntarazu.answer_s = {answer_s:.6f}\n"
    return text + settled + rest


def script(kind: str, run: config.RunSettings) -> str:
    """One of SCRIPTS with the site's settings. Raises TarazuError where there is no library that can be preloaded."""
    library = str(built.library_path("libtarazu.so"))
    if " " in library or ":" in library:
        raise TarazuError(f"{library}: expected a path without space and colon, as LD_PRELOAD needs it")
    settings: dict[str, object] = {"spool_dir": run.spool_dir}
    if kind == "task_prolog":
        settings |= {
            "library": library,
            "stop_file": run.stop_file,
            "include": ":".join(run.include),
            "exclude": ":".join(run.exclude),
            "exclude_programs": ":".join(run.exclude_programs),
            **{
                name: "\n".join(getattr(run, name))
                for name in ("exclude_users", "only_users", "only_projects", "only_partitions")
            },
        }
    else:
        settings |= {"state_dir": run.state_dir, "seconds": EPILOG_S, "most_kib": MOST_KIB}
        settings |= {"kept_kib": KEPT_KIB, "kept_steps": KEPT_STEPS, "kept_days": KEPT_DAYS}
    lines = "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in settings.items())
    text = (Path(__file__).parent / f"{kind}.sh").read_text()
    return text.replace("#SETTINGS\n", lines, 1).replace("#ENTER\n", ENTER + EMIT, 1)


def _quoted(text: str) -> str:
    """As Lua reads it."""
    return (
        '"' + "".join(c if (c.isascii() and c.isalnum()) or c in "/._-" else _escape(c) for c in text) + '"'
    )


def _escape(character: str) -> str:
    return "".join(f"\\{byte:03d}" for byte in character.encode())
