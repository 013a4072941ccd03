"""The part of the status page: all of the system in a browser, read only (the daemon tarazu-page).

settings  `[part.page]`
service   the daemon: mdsd is asked, the history noted
seen      what mdsd said last, and how well that is known
history   each OST over time, in a file of bounded size; charts: as data for curves
results   what commands' `--json` has left in a directory
problems  what is wrong, and which command mends it
pages     addresses → documents, each made once for what is seen
words     what templates, which escape all that they show, need of figures and times
server    HTTP: GET and HEAD, and headers that let the browser load nothing else
templates, uplot   the pages, their style and script; the library that draws curves, by others
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tarazu.part import Part
from tarazu.parts.page.settings import NAME, PageSettings, directory_of

if TYPE_CHECKING:
    from tarazu.doctor.node import Finding, Node


class PagePart(Part):
    name, settings = "page", PageSettings
    needs = ("changes",)
    programs: ClassVar = {NAME: "tarazu.parts.page.service"}

    def examine(self, node: Node) -> Iterator[Finding]:
        from tarazu.doctor.capacity import space

        yield from space(f"{NAME} state", Path(directory_of(node.settings)))


PART = PagePart()
