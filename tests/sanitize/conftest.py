"""The helpers of `python -m tests.sanitize` are found whatever the tests are started from."""

import sys
from pathlib import Path

ROOT = str(Path(__file__).parent.parent.parent)
if ROOT not in sys.path:
    sys.path.append(ROOT)
