"""The part of the status page: all of the system in a browser, read only (the daemon tarazu-page).

settings  `[part.page]`
service   the loop: mdsd is asked, the imbalance is noted
seen      what mdsd said last, and how well that is known
ring      imbalance over time, in a file of bounded size
past      in the same file: each OST over time, and what became of OSTs, servers and mdsd
results   what commands' `--json` has left in a directory
pages     addresses → documents, each made once for what is seen
server    HTTP: GET and HEAD, and headers that let the browser load nothing else
document  one HTML document; its style and its script: page.css, page.js
problems, news, heat, state, charts, changes, outcomes   the first page's parts, in their order
dense     the map of thousands of OSTs, as a few drawings
single    the pages of one OST and of one server
markup, links, times   HTML that is escaped wherever it comes from; addresses; times in UTC and the browser's zone
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu.part import Part
from tarazu.parts.page.settings import NAME, PageSettings, directory_of

if TYPE_CHECKING:
    from tarazu.doctor.node import Finding, Node


class PagePart(Part):
    name, settings = "page", PageSettings

    def examine(self, node: Node) -> Iterator[Finding]:
        from tarazu.doctor.capacity import space

        yield from space(f"{NAME} state", Path(directory_of(node.settings)))


PART = PagePart()
