"""One case a lever."""

from __future__ import annotations

from ..case import Case
from .client import ClientCase
from .files import FilesCase
from .layout import LayoutCase

CASES: dict[str, type[Case]] = {case.name: case for case in (ClientCase, FilesCase, LayoutCase)}
