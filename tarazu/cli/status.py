"""Ask clientd, and through it mdsd, how they are: peers, targets, promises, allocations."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from tarazu import config
from tarazu.cli.output import print_json
from tarazu.errors import Unavailable
from tarazu.wire import local

TIMEOUT_S = 5.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    with local.connect(settings.clientd.socket, TIMEOUT_S) as channel:
        answer = channel.ask(local.StatusQuery())
    if not isinstance(answer, local.StatusAnswer):
        raise Unavailable(f"clientd: expected its status, found {type(answer).__name__}")
    if options.json:
        print_json(answer.status)
    else:
        _print(answer.status)
    return 0


def _print(value: Mapping[str, Any], indent: str = "") -> None:
    """Nested values below their name; lists of objects as lines."""
    width = max((len(str(k)) for k, v in value.items() if not isinstance(v, (dict, list))), default=0)
    for name, item in value.items():
        if isinstance(item, dict):
            print(f"{indent}{name}")
            _print(item, indent + "  ")
        elif isinstance(item, list) and item and isinstance(item[0], dict):
            print(f"{indent}{name}")
            for entry in item:
                print(f"{indent}  " + "  ".join(f"{k}={v}" for k, v in entry.items()))
        else:
            shown = ", ".join(map(str, item)) if isinstance(item, list) else item
            print(f"{indent}{name!s:<{width}}  {shown}")
