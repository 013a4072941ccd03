"""Print the settings in force, print a file to start from, or check one; keys of the daemons:

    tarazu config                           the settings in force on this node
    tarazu config --config site.toml        those that this file gives
    tarazu config default                   every setting as a comment: default, what it does, when it is read
    tarazu config check                     one line for each mistake: where, what was expected, what was found
    tarazu config check new.toml            of a file before it is put in place; also what its changes need to count

`conf.d/*.toml` beside a tarazu.toml are read after it. Exit status of check: 0 nothing is wrong, 1 something is.
"""

from __future__ import annotations

import argparse
import dataclasses

from tarazu import config
from tarazu.cli.output import common_options, print_json
from tarazu.part import sections


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")
    verbs = parser.add_subparsers(metavar="VERB")
    default = verbs.add_parser("default", help="a file to start from", parents=[common_options()])
    default.set_defaults(execute=_default)
    check = verbs.add_parser("check", help="look for mistakes", parents=[common_options()])
    check.add_argument("file", nargs="?", metavar="FILE", help="in this one (default: as --config)")
    check.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="as JSON")
    check.set_defaults(execute=_check)


def _default(_: argparse.Namespace) -> int:
    print(config.commented(sections()), end="")
    return 0


def _check(options: argparse.Namespace) -> int:
    from tarazu.cli.config_check import check

    return check(options.file, options.config, as_json=options.json)


def execute(options: argparse.Namespace) -> int:
    loaded = config.load(options.config)
    settings = {section: dataclasses.asdict(getattr(loaded, section)) for section in config.SECTIONS}
    for section, cls in sections().items():
        settings[section] = dataclasses.asdict(loaded.part.of(section.partition(".")[2], cls))
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
