"""Where the build put what it compiled."""

from __future__ import annotations

import os
from pathlib import Path

from tarazu.errors import TarazuError


def library_path(name: str) -> Path:
    """Where the build put `libtarazu.so` or another of its libraries; where that is a link, what it names: packages
    have the library at one path on launch nodes and on compute nodes, which have no Python. Raises TarazuError when
    not built.
    """
    import tarazu

    places = [Path(entry) / "lib" / name for entry in tarazu.__path__]
    for place in places:
        if place.is_file():
            # Only the last link: the directories above may be a site's own, such as `current`.
            return Path(os.path.normpath(place.parent / os.readlink(place))) if place.is_symlink() else place
    raise TarazuError(f"{name} is not built: looked for {', '.join(map(str, places))}")
