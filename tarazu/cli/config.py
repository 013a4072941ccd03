"""Print the settings in force, each with where it may be set, or check a configuration file:

tarazu config --config site.toml        the settings that this file gives
tarazu config --help-settings           every setting, its default and what it does
"""

from __future__ import annotations

import argparse
import dataclasses

from tarazu import config
from tarazu.cli.output import print_json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--help-settings", action="store_true", help="list every setting (Markdown)")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    if options.help_settings:
        print(config.table())
        return 0
    settings = dataclasses.asdict(config.load(options.config))
    settings["clientd"]["database"] = config.without_password(settings["clientd"]["database"])
    if options.json:
        print_json(settings)
        return 0
    for section, values in settings.items():
        print(f"[{section}]")
        for name, value in values.items():
            print(f"{name} = {config.toml(value)}")
        print()
    return 0
