"""Say which file creations of a program the placement library would not see.

Reads the program's files and those of its libraries; runs nothing. Exit status: 0 when nothing escapes, 1 when
something may, 2 when the program cannot be examined. docs/limitations.md says more about each case.

tarazu job check-app ./ior
"""

from __future__ import annotations

import argparse
import os

import msgspec

from tarazu.cli.output import print_json
from tarazu.errors import Unavailable

UNKNOWABLE = "System calls in the program's own assembly cannot be detected: compare with a recorded run."


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", help="a path, or a name to be found in PATH")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    try:
        from tarazu.escapes import ESCAPES, MAY, NOTE, check
    except ModuleNotFoundError as error:
        raise Unavailable(f"expected pyelftools (pip install pyelftools), found no {error.name}") from None
    report = check(options.program, os.environ)
    status = 1 if report.escapes else 0
    if options.json:
        print_json({**msgspec.to_builtins(report), "escapes": report.escapes})
        return status
    via = f", run by {' → '.join(report.chain)}" if report.chain else ""
    print(f"{report.program}: {report.kind}{via}, {len(report.libraries)} libraries")
    print(f"seen: {', '.join(report.covered) or 'no function that creates files'}")
    for level in (ESCAPES, MAY, NOTE):
        for finding in report.findings:
            if finding.level == level:
                where = ", ".join(os.path.basename(w) for w in finding.where)
                print(f"{level}: {finding.what}" + (f" ({where})" if where else ""))
    whole = any(f.level == ESCAPES for f in report.findings)
    print("it escapes" if whole else "something may escape" if status else "nothing escapes")
    print(UNKNOWABLE)
    return status
