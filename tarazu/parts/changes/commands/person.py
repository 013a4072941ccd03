"""Who decides: a name of a person, not of an account that several share."""

from __future__ import annotations

import argparse
import os
import pwd

from tarazu.errors import BadInput


def by_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--by", default="", metavar="NAME", help="who you are (default: who called sudo, or the login name)"
    )


def name_of(options: argparse.Namespace) -> str:
    """Raises BadInput where it is not known who root is."""
    name = " ".join((options.by or login()).split())
    if name in ("", "root"):
        raise BadInput("--by", "a person's name, because root may be anybody", name or None)
    return name


def login() -> str:
    """`root` where nothing else is known."""
    if name := os.environ.get("SUDO_USER", ""):
        return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
