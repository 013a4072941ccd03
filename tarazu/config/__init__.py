"""Every setting, declared once (`sections`).

The configuration file, the environment, `--help` and docs/settings.md come from there.
Precedence: environment (`TARAZU_<SECTION>_<NAME>`), file, default.
"""

from tarazu.config.check import listening
from tarazu.config.files import DEFAULT_FILE, own_path, root
from tarazu.config.parts import PART, PartTables
from tarazu.config.reading import Examined, changed, examine, load, override, read_at, reloaded
from tarazu.config.sections import (
    READ_EACH_STEP,
    RELOADED,
    SECTIONS,
    Allocate,
    ClientdSettings,
    Keys,
    LayoutSettings,
    MdsdSettings,
    OssdSettings,
    Predict,
    RunSettings,
    Settings,
    State,
    Weights,
)
from tarazu.config.text import commented, shown_default, table, toml, without_password

__all__ = [
    "DEFAULT_FILE",
    "PART",
    "READ_EACH_STEP",
    "RELOADED",
    "SECTIONS",
    "Allocate",
    "ClientdSettings",
    "Examined",
    "Keys",
    "LayoutSettings",
    "MdsdSettings",
    "OssdSettings",
    "PartTables",
    "Predict",
    "RunSettings",
    "Settings",
    "State",
    "Weights",
    "changed",
    "commented",
    "examine",
    "listening",
    "load",
    "override",
    "own_path",
    "read_at",
    "reloaded",
    "root",
    "shown_default",
    "table",
    "toml",
    "without_password",
]
