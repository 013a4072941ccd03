"""Spatial bursts: a few neighbouring compute nodes do most of the I/O, and meet on a few I/O nodes (LNet routers).

`tarazu bursts VERB --help` says more.
"""

from __future__ import annotations

import argparse

from tarazu.cli.verbs import add_verbs, execute_verb

VERBS: dict[str, tuple[str, str]] = {
    "import": (
        "import_",
        "take over traffic out of CSV files (Zabbix, Prometheus), and jobs out of Slurm's lists",
    ),
    "remap": (
        "remap",
        "which router serves which compute nodes: what other mappings give, and set one",
    ),
    "report": ("report", "how bursty in space the site's I/O has been, as tables and pictures"),
}


execute = execute_verb


def configure(parser: argparse.ArgumentParser) -> None:
    add_verbs(parser, __name__, VERBS)
