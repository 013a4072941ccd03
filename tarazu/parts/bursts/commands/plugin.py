"""Print a plugin of Slurm that asks tarazu-burstd which nodes a job should get.

    tarazu change bursts plugin job_submit > /etc/slurm/job_submit.lua     with JobSubmitPlugins=lua in slurm.conf
    tarazu change bursts plugin library > /etc/slurm/tarazu.lua            for a site's own job_submit.lua:
        local tarazu = dofile("/etc/slurm/tarazu.lua")              at its top
        tarazu.submit(job_desc, part_list)                          last in slurm_job_submit

It needs LuaSocket (Debian: lua-socket) where it runs. With it nothing changes until part.bursts.nodes is `apply`;
taking it away is taking its line away.
"""

from __future__ import annotations

import argparse

from tarazu import config
from tarazu.parts.bursts.settings import options_of


def configure(parser: argparse.ArgumentParser) -> None:
    from tarazu.parts.bursts.slurm import KINDS

    text = "; ".join(f"{kind}: {what}" for kind, what in KINDS.items())
    parser.add_argument("kind", choices=list(KINDS), help=text)


def execute(options: argparse.Namespace) -> int:
    from tarazu.parts.bursts.slurm import plugin

    print(plugin(options.kind, options_of(config.load(options.config))), end="")
    return 0
