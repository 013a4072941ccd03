"""The `tarazu` command: parsing and printing only; the work is done in the rooms below.

A subcommand is a module here with `configure(parser)` and `execute(options) -> exit status`; it is imported
only when it is called, so that `tarazu run` starts quickly.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from tarazu.cli.output import Terminal, common_options
from tarazu.errors import TarazuError
from tarazu.names import shown

COMMANDS = {
    "run": ("tarazu.cli.run", "run a program or a parallel job; record it, and place its files"),
    "predict": ("tarazu.cli.predict", "forecast the files of an application's next run"),
    "phases": ("tarazu.cli.phases", "print the I/O phases of Darshan logs and of recorded runs"),
    "db": ("tarazu.cli.db", "show the interaction database"),
    "explain": ("tarazu.cli.explain", "say why a file lies where it lies"),
    "drain": ("tarazu.cli.drain", "keep new files off hot and sick OSTs with Lustre's own parameters"),
    "prepare": (
        "tarazu.cli.prepare",
        "default layouts of a job's directories, for programs without the library; run it, take them back",
    ),
    "rebalance": (
        "tarazu.cli.rebalance",
        "which existing files are worth moving to other OSTs, and the commands",
    ),
    "pool": ("tarazu.cli.pool", "keep an OST pool of good OSTs, for programs without the library"),
    "routers": ("tarazu.cli.routers", "say which LNet routers running jobs' data take, and why; undo it"),
    "tune": ("tarazu.cli.tune", "parameters that learn: what is set, what was learned; apply it, undo it"),
    "bursts": (
        "tarazu.cli.bursts",
        "which compute nodes' I/O meets on which I/O nodes: see it, map it anew, choose jobs' nodes",
    ),
    "top": ("tarazu.cli.top", "OSSs and OSTs live: fill, rate, promises, what is amiss"),
    "job": ("tarazu.cli.job", "what became of one job: steps, plans, promises, files, routers, what is off"),
    "status": ("tarazu.cli.status", "ask the daemons how they are"),
    "whatif": (
        "tarazu.cli.whatif",
        "say what other placements of a job's files would have given, from Darshan logs",
    ),
    "report": (
        "tarazu.cli.report",
        "say which remembered runs would have gained by placement, and why not the others",
    ),
    "history": ("tarazu.cli.history", "list the remembered runs of your applications"),
    "benchmarks": (
        "tarazu.cli.benchmarks",
        "which IOR runs tell how applications' bandwidth depends on OSTs or I/O nodes, and what came of them",
    ),
    "disable": ("tarazu.cli.disable", "switch tarazu off: one job, all of yours, or the whole site"),
    "enable": ("tarazu.cli.enable", "undo `disable`"),
    "ledger": (
        "tarazu.cli.ledger",
        "look at mdsd's ledger on disk: what is promised, and whether it can be read",
    ),
    "map": ("tarazu.cli.map", "print a placement map"),
    "check-app": ("tarazu.cli.check_app", "say what of a program the placement library would not see"),
    "doctor": (
        "tarazu.cli.doctor",
        "say whether this node is as tarazu needs it, and how to mend what is not",
    ),
    "collect": ("tarazu.cli.collect", "say which statistics this node gives, and from where"),
    "keys": ("tarazu.cli.keys", "create, list and revoke the keys that authenticate the daemons"),
    "config": ("tarazu.cli.config", "print the settings in force, or check a file"),
    "testbed": ("tarazu.sim.testbed.cli", "an emulated Lustre on this machine, for trying and testing"),
    "demo": ("tarazu.cli.demo", "record, predict, allocate and place on the testbed, and show the balance"),
    "sim": ("tarazu.cli.sim", "simulate clusters: one case, whole studies with a report, validation"),
    "forward": (
        "tarazu.cli.forward",
        "how many and which LNet routers or OSTs applications get: compare policies",
    ),
    "scenarios": ("tarazu.cli.scenarios", "the paper's scenarios under every policy, beside their bounds"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point: returns the exit status; bad input is one line on standard error and status 2."""
    words = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # names need not be UTF-8: they come out as they are
        if sys.stdout.isatty():
            sys.stdout = Terminal(sys.stdout)
    try:
        status = _dispatch(words)
        if argv is None and words[:1] == ["run"]:
            _leave(status)
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130


def _leave(status: int) -> NoReturn:
    """End at once: to take the interpreter down would take as long as to start it, and somebody waits for his shell."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        top_parser().print_help()
        return 0 if words else 2
    if words[0] == "--version":
        from importlib.metadata import version

        print(f"tarazu {version('tarazu')}")
        return 0
    if words[0] not in COMMANDS:
        print(f"tarazu: expected a command among {', '.join(COMMANDS)}, found {words[0]!r}", file=sys.stderr)
        return 2
    parser, execute = command(words[0])
    options = parser.parse_args(words[1:])
    return guarded(lambda: execute(options), f"tarazu {words[0]}", debug=options.debug)


def command(name: str) -> tuple[argparse.ArgumentParser, Callable[[argparse.Namespace], int]]:
    """A command's parser, and what does its work; only its module is imported."""
    module_name, help_text = COMMANDS[name]
    module = importlib.import_module(module_name)
    parser = argparse.ArgumentParser(
        prog=f"tarazu {name}",
        description=(module.__doc__ or help_text).strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common_options()],
    )
    parser.set_defaults(config=None, debug=False)
    module.configure(parser)
    return parser, lambda options: int(module.execute(options))


def guarded(work: object, program: str, *, debug: bool = False) -> int:
    """Call `work()`; an error of tarazu's tree becomes one line on standard error and its exit status."""
    try:
        return int(work())  # type: ignore[operator]
    except TarazuError as error:
        if debug:
            raise
        print(shown(f"{program}: {error}"), file=sys.stderr)
        return error.exit_status


def top_parser() -> argparse.ArgumentParser:
    """What `tarazu --help` prints."""
    listing = "\n".join(f"  {name:<10} {text}" for name, (_, text) in COMMANDS.items())
    return argparse.ArgumentParser(
        prog="tarazu",
        usage="tarazu COMMAND [OPTIONS]",
        description="Balance I/O on Lustre, from the application's open() to the disk.",
        epilog=f"commands:\n{listing}\n\n`tarazu COMMAND --help` says more. First steps: docs/quickstart.md.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
