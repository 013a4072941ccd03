"""The part of layouts that fit a site's files (paper, section 8.6): `tarazu change layouts`.

commands       the command
sizes          how large files are, in classes; listing: of a list; gathered: of logs and recorded runs
cost           what a layout costs these files; later: what late components of grown files do
search, tuner  the cheapest layout, and how it stands beside others; played: on OSTs, by Lustre's allocator
picture        costs by size of file
"""

from __future__ import annotations

from typing import ClassVar

from tarazu.part import Part


class PflPart(Part):
    name, extra = "pfl", "sim"
    needs = ("changes", "mdt")
    commands: ClassVar = {
        "change layouts": (
            "tarazu.parts.pfl.commands",
            "which progressive layout fits the site's files, and the commands",
        )
    }


PART = PflPart()
