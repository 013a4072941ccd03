"""Which roles a node has: by what Lustre shows, by the keys it holds, by the daemons it is told to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tarazu.config import Settings
from tarazu.stats import routing
from tarazu.stats.params import find
from tarazu.stats.sources import survey

MGS = ("proc/fs/lustre/mgs/MGS", "sys/fs/lustre/mgs/MGS", "sys/kernel/debug/lustre/mgs/MGS")
BY_KEY = {"oss": "oss.key", "mdsd": "server.key", "launch": "client.key"}
BY_UNIT = {"oss": "tarazu-ossd", "mdsd": "tarazu-mdsd", "launch": "tarazu-clientd"}
WANTS = "etc/systemd/system/multi-user.target.wants"


def roles_of(root: Path, system: Path, settings: Settings) -> frozenset[str]:
    """Those that are seen; more may be here that only root sees. `root`, `system`: as a `Node` has them."""
    return frozenset(_seen(root, system, settings))


def _seen(root: Path, system: Path, settings: Settings) -> Iterator[str]:
    yield from survey(root).roles
    if any(_exists(root / path) for path in MGS):
        yield "mgs"
    for path in find(root, "lnet.routes").values():
        try:
            if routing.is_routing(path.read_text(errors="replace")):
                yield "router"
        except OSError:
            pass
    keys = Path(settings.keys.directory)
    # All keys are made where the server's is: there they say nothing of OSSs and launch nodes.
    made_here = _exists(keys / BY_KEY["mdsd"])
    for role, key in BY_KEY.items():
        by_key = _exists(keys / key) and (role == "mdsd" or not made_here)
        if by_key or _exists(system / WANTS / f"{BY_UNIT[role]}.service"):
            yield role
    if _exists(Path(settings.clientd.socket)):
        yield "launch"


def _exists(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()
    except OSError:
        return False
