"""The lever of directories that are not there yet: `tests/parts/mdt/lever_case.py` has it beside the other one."""

from __future__ import annotations

from tests.parts.mdt.lever_case import MkdirCase

CASE = MkdirCase
