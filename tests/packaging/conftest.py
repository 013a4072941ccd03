"""packaging/ is programs, not a package: its files find one another by their directory."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "packaging" / part) for part in ("", "day_one")]
