"""One case a lever."""

from __future__ import annotations

from ..case import Case
from .client import ClientCase

CASES: dict[str, type[Case]] = {case.name: case for case in (ClientCase,)}
