"""One case a lever."""

from __future__ import annotations

from tests.of_parts import modules

from ..case import Case
from .client import ClientCase, ClientPairCase
from .drain import DrainCase
from .files import FilesCase
from .mapping import MappingCase
from .mdt import MdtCase, MkdirCase
from .nodes import NodesCase
from .nrs import NrsCase, TbfCase

CASES: dict[str, type[Case]] = {
    case.name: case
    for case in (
        ClientCase,
        ClientPairCase,
        DrainCase,
        FilesCase,
        MappingCase,
        MdtCase,
        MkdirCase,
        NodesCase,
        NrsCase,
        TbfCase,
        *(module.CASE for module in modules("lever_case")),
    )
}
