"""Check this node: each thing that tarazu needs, what was found, and how to fix what is wrong.

    tarazu doctor                  the node's roles (OSS, MDS, mdsd's node, launch node …) are detected
    tarazu doctor --role launch    check it as a launch node; several --role are possible
    tarazu doctor --root DIR       a copy of a node's /proc, /sys, /etc and /usr
    tarazu doctor --problems       only what warns or fails

It changes nothing. Without root it says what only root would see.

Exit status: 0 nothing fails, 1 something does.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path

from tarazu import config
from tarazu.cli.output import print_json, say
from tarazu.doctor.node import AS_ROOT, ROLES, Finding, Node
from tarazu.errors import TarazuError

WORDS = {"ok": "ok   ", "warn": "WARN ", "fail": "FAIL ", "skip": "  -  "}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--role",
        action="append",
        default=[],
        choices=tuple(ROLES),
        help="check the node as this (default: detected)",
    )
    parser.add_argument(
        "--root", metavar="DIR", type=Path, help="look at /proc, /sys, /etc and /usr below this directory"
    )
    parser.add_argument("--problems", action="store_true", help="only checks that warn or fail")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    from tarazu.doctor.examine import examine

    node = node_of(options.config, options.root, options.role)
    findings = list(examine(node))
    if options.json:
        print_json({"roles": sorted(node.roles), "root": str(node.root), "findings": findings})
    else:
        _print(node, findings, only_problems=options.problems)
    return 1 if any(finding.verdict == "fail" for finding in findings) else 0


def node_of(file: str | None, root: Path | None = None, roles: list[str] | None = None) -> Node:
    """This node, or the one whose files lie below `root`, with the settings in force."""
    from tarazu.cli.config_check import problems
    from tarazu.config import files
    from tarazu.daemons.asking import status_of
    from tarazu.doctor.node import roles_of

    examined = config.examine(file)
    try:
        paths = files.chosen(file, os.environ)
    except TarazuError:
        paths = []
    # A testbed's /proc and /sys are where its clients and servers find them.
    system = root or Path("/")
    below = root or Path(config.root())
    return Node(
        examined.settings,
        frozenset(roles or roles_of(below, system, examined.settings)),
        below,
        system,
        files=tuple(paths),
        mistakes=tuple(problems(examined)),
        systemctl="" if root else "systemctl",
        status=lambda: status_of(examined.settings),
    )


def _print(node: Node, findings: list[Finding], *, only_problems: bool) -> None:
    named = ", ".join(ROLES[role].partition(":")[0] for role in ROLES if role in node.roles)
    say(f"this node: {named or 'no role that tarazu knows (choose one with --role)'}")
    topic = ""
    for finding in findings:
        if only_problems and finding.verdict not in ("warn", "fail"):
            continue
        if finding.topic != topic:
            topic = finding.topic
            say(topic)
        say(f"  {WORDS[finding.verdict]} {finding.check}: {finding.found}")
        if finding.verdict in ("warn", "fail") and finding.mend:
            say(f"          mend: {finding.mend}")
    hidden = [f.check for f in findings if f.verdict == "skip" and f.mend == AS_ROOT]
    if hidden:
        say(f"only root can check: {', '.join(dict.fromkeys(hidden))}")
    counts = Counter(finding.verdict for finding in findings)
    say(f"{counts['ok']} ok, {counts['warn']} warn, {counts['fail']} fail, {counts['skip']} not checked")
