"""Print a placement map: its header and its rows. Names are kept as keyed hashes only.

tarazu job map show FILE
"""

from __future__ import annotations

import argparse

from tarazu.cli.output import common_options, print_json, print_table
from tarazu.layout.setstripe import format_layout
from tarazu.store.placement_map import read_map
from tarazu.units import counted, human_bytes, human_time


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(dest="action", required=True, metavar="show")
    show = sub.add_parser("show", help="header and rows of a map", parents=[common_options()])
    show.add_argument("file", help="map.<generation>")
    show.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    placement_map = read_map(options.file)
    if options.json:
        print_json(placement_map)
        return 0
    m = placement_map
    expires = human_time(m.expires_s) if m.expires_s else "never"
    print(f"generation {m.generation}, created {human_time(m.created_s)}, expires {expires}")
    print(f"{counted(m.ost_count, 'OST')}, {counted(len(m.entries), 'row')}, {human_bytes(m.size_bytes)}")
    print_table(
        ("row", "name", "loose", "layout and OSTs"),
        [
            (e.row_id, f"{e.name_hash:016x}", f"{e.loose_hash:016x}", format_layout(e.layout, e.osts))
            for e in placement_map.entries
        ],
        left=4,
    )
    return 0
