"""What is noted on a node where there are no locks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tarazu import locks
from tests.test_locks import library, without_locks  # noqa: F401

USES = """
import sys
from pathlib import Path
from tarazu.errors import TarazuError
from tarazu.parts.changes.noted import Noted

for use in (Noted.claim, lambda noted: noted.locked().__enter__()):
    try:
        use(Noted(Path(sys.argv[1]) / "changes"))
    except TarazuError as error:
        print(error)
"""


def test_nobody_is_said_to_hold_them_where_there_are_no_locks(
    without_locks: dict[str, str],  # noqa: F811
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", USES, str(tmp_path)]
    done = subprocess.run(command, env=without_locks, capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert len(said) == 2 and all(f"{locks.EXPECTED}, found " in line for line in said)
