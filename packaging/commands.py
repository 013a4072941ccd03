"""What each package's commands do where that package and what it needs are all that there is of tarazu: started by the
Python of such a tree, or here with everything else barred.

    python3 commands.py tarazu-oss FILE    FILE: settings, without daemons
"""

from __future__ import annotations

import contextlib
import io
import sys
import traceback
from collections.abc import Iterator

OSS = (
    "doctor", "doctor --role oss --role mds", "doctor collect", "status",
    "top --once", "init --role oss --mdsd mds1 --dry-run", "config", "config default", "config check",
    "config keys list", "change list", "change score", "change log", "change drain --advise", "change pool",
    "change tune",
)  # fmt: skip
MAIN = (
    "doctor --role mdsd --role launch", "job show", "job explain --costs", "why", "history list", "history report",
    "history db show", "change mdt", "enable",
)  # fmt: skip
MEANT = {
    "tarazu-oss": OSS,
    "tarazu": MAIN,
    "tarazu-analysis": ("whatif --example", "change rebalance", "change layouts"),
}
"""Package → commands that it brings, as they are called."""
DAEMONS = {
    "tarazu-oss": "ossd announcer council page pool",
    "tarazu": "mdsd clientd",
    "tarazu-analysis": "burstd",
}
NEEDS = "expected the package "
"""What a command says that is another package's."""


def complaints(package: str, settings: str) -> Iterator[str]:
    """One for each command that ends as it must not."""
    from tarazu import cli
    from tarazu.daemons import questions

    questions.ANSWER_S = 0.1  # nobody is there
    for name in cli.commands():
        others = package != "tarazu-analysis" and cli.is_of_analysis(name)
        yield from _of(f"{name} --help", (0, 2) if others else (0,))
    for words in MEANT[package]:
        yield from _of(f"{words} --config {settings}", (0, 1, 2, 3))
    for name in DAEMONS[package].split():
        yield from _help_of_daemon(name)


def _of(words: str, statuses: tuple[int, ...]) -> Iterator[str]:
    from tarazu import cli

    status, said = _tried(lambda: cli.main(words.split()))
    if status not in statuses or (statuses != (0, 2) and NEEDS in said):
        yield f"tarazu {words}: status {status}: {said[-2000:]}"


def _help_of_daemon(name: str) -> Iterator[str]:
    from tarazu.daemons import programs

    if f"tarazu-{name}" not in programs.programs():  # its part was taken away
        return
    sys.argv = [f"tarazu-{name}", "--help"]
    status, said = _tried(programs.main)
    if status != 0:
        yield f"tarazu-{name} --help: status {status}: {said[-2000:]}"


def _tried(work: object) -> tuple[object, str]:
    """Status (or what was raised), and what was said."""
    said = io.TextIOWrapper(io.BytesIO(), write_through=True)
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            status: object = work()  # type: ignore[operator]
        except SystemExit as error:
            status = error.code or 0
        except BaseException as error:
            status = type(error).__name__
            traceback.print_exc()
    said.seek(0)
    return status, said.read()


if __name__ == "__main__":
    wrong = list(complaints(sys.argv[1], sys.argv[2]))
    print("\n".join(wrong), file=sys.stderr)
    sys.exit(bool(wrong))
