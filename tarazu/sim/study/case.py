"""A case: a part of a study that is computed on its own, with an id that is the hash of all that its rows depend on."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import msgspec

MODEL = (
    "sim/kernel",
    "sim/model",
    "sim/workloads",
    "sim/study/simulate.py",
    "sim/allocation",
    "allocate",
    "layout",
    "trace",
    "stats",
)
"""What computes a row, below the package: a change there is another simulator."""


class Case(msgspec.Struct, frozen=True):
    """What a study is made of. Its fields, one of which is the model's `fingerprint`, are all that rows depend on."""

    @property
    def id(self) -> str:
        """Hash of all that its result depends on."""
        return digest(msgspec.structs.astuple(self))

    @property
    def label(self) -> str:
        """For people: what is different from the other cases of the study."""
        return self.id

    @property
    def weight(self) -> float:
        """How long it takes, in a unit of the study's own."""
        return 1.0

    @property
    def computed_by(self) -> str:
        """Module with `rows(case, progress)`, which computes it."""
        return type(self).__module__


def digest(content: object) -> str:
    """Of what msgspec can encode."""
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()[:16]


@cache
def fingerprint(model: tuple[str, ...] = MODEL) -> str:
    """Of the source code that a result depends on: equal on two machines if and only if that is.

    model: files and folders as in `MODEL`.
    """
    import tarazu
    import tarazu.sim

    package, simulator = Path(tarazu.__file__).parent, Path(str(tarazu.sim.__file__)).parent
    digest = hashlib.sha256()
    for part in model:
        root = simulator / part.removeprefix("sim/") if part.startswith("sim/") else package / part
        for path in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
