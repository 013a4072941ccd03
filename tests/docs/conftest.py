"""The scripts of docs/ are no package: they lie beside the pages that they make."""

from __future__ import annotations

import sys

from tests.docs.reading import ROOT

sys.path.insert(0, str(ROOT / "docs"))
