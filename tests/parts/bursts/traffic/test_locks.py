"""Days of traffic on a file system that answers locks with an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tarazu import locks
from tests import test_locks
from tests.test_locks import ANSWERS

library, without_locks = test_locks.library, test_locks.without_locks

USE = """
import sys
from pathlib import Path
from tarazu.errors import TarazuError
from tarazu.parts.bursts.traffic import days
try:
    days.tidy(Path(sys.argv[1]) / "traffic", 0.0)
except TarazuError as error:
    print(error)
"""


@pytest.mark.parametrize("number", ANSWERS)
def test_nobody_is_said_to_hold_a_lock_where_there_are_none(
    without_locks: dict[str, str], tmp_path: Path, number: int
) -> None:
    command = [sys.executable, "-c", USE, str(tmp_path)]
    env = without_locks | {"NOLOCKS_ERRNO": str(number)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.endswith(f"{locks.EXPECTED}, found {os.strerror(number)!r}\n")
