"""The part of `tarazu whatif`: what a job's files would have gained on other OSTs, from its Darshan log alone.

commands       `tarazu whatif`; ior_tables: its tables for results of IOR
job, system    what a log says of a job's files, and of the OSTs
study          the question itself; comparison: the same files by each policy; stripe_counts: with more stripes
words, picture the answer
ior            what slow ranks cost a run of IOR or IO500, from its outputs
"""

from __future__ import annotations

from typing import ClassVar

from tarazu.part import Part


class WhatifPart(Part):
    name, heading, extra = "whatif", "your jobs", "whatif"
    commands: ClassVar = {
        "whatif": (
            "tarazu.parts.whatif.commands",
            "say what a job would have gained, from its Darshan log; needs no cluster",
        )
    }


PART = WhatifPart()
