"""Scripts for Slurm's tasks' prolog and nodes' epilog, which `tarazu history gather --print` prints."""

from __future__ import annotations

import shlex
from pathlib import Path

from tarazu import built, config
from tarazu.errors import TarazuError
from tarazu.run.nodes.gather import EMIT
from tarazu.trusted import ENTER

SCRIPTS = ("task_prolog", "node_epilog")
EPILOG_S = 15
"""An Epilog may take so long: until it has ended its node runs no other job."""
MOST_KIB = 2 << 20
"""Of one step, from one node."""
KEPT_KIB, KEPT_STEPS, KEPT_DAYS = 256 << 10, 500, 30
"""Of a user, in his own directory, until `tarazu history gather` takes it: what is beyond goes, the oldest first."""


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
