"""One case a lever."""

from __future__ import annotations

from tests.of_parts import modules

from ..case import Case
from .client import ClientCase, ClientPairCase
from .drain import DrainCase
from .files import FilesCase
from .nrs import NrsCase, TbfCase

CASES: dict[str, type[Case]] = {
    case.name: case
    for case in (
        ClientCase,
        ClientPairCase,
        DrainCase,
        FilesCase,
        NrsCase,
        TbfCase,
        *(module.CASE for module in modules("lever_case")),
    )
}
