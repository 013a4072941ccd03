"""Spatial bursts: a few neighbouring compute nodes do most of the I/O, and meet on a few I/O nodes (LNet routers).

    tarazu bursts report                 how bursty the site's I/O has been, beside two published machines
    tarazu bursts remap --advise         what other mappings of nodes to routers would have given
    tarazu bursts nodes                  which of Slurm's jobs would get other nodes, and why not the others

`tarazu bursts VERB --help` says more; what it is about: docs/bursts.md.
"""

from __future__ import annotations

import argparse

from tarazu.cli.verbs import add_verbs, execute_verb

VERBS: dict[str, tuple[str, str]] = {
    "report": ("report", "how bursty in space the site's I/O has been, as tables and pictures"),
    "nodes": ("nodes", "which nodes are asked of Slurm for which application's jobs"),
    "plugin": ("plugin", "print a plugin for Slurm that asks tarazu-burstd"),
    "remap": (
        "remap",
        "which router serves which compute nodes: what other mappings give, and set one",
    ),
    "sbatch": ("sbatch", "sbatch, with the nodes that tarazu-burstd would ask for"),
    "import": (
        "import_",
        "take over traffic out of CSV files (Zabbix, Prometheus), and jobs out of Slurm's lists",
    ),
}


execute = execute_verb


def configure(parser: argparse.ArgumentParser) -> None:
    add_verbs(parser, __name__, VERBS)
