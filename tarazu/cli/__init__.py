"""The `tarazu` command: parsing and printing only; the work is done in the rooms below.

A subcommand is a module with `configure(parser)` and `execute(options) -> exit status`; it is imported only when it
is called, so that `tarazu run` starts quickly. Those of the simulator lie with it, in `tarazu.sim.cli`.
"""

from __future__ import annotations

import codecs
import contextlib
import gc
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tarazu.errors import BadInput, TarazuError
from tarazu.names import shown

if TYPE_CHECKING:
    import argparse

    from tarazu.cli.parser import Parser

COMMANDS = {
    "run": ("tarazu.cli.run", "run a program or a parallel job; record it, and place its files"),
    "job": ("tarazu.cli.job", "one job, file or program: what became of it, and why"),
    "job show": ("tarazu.cli.job.show", "one job: its steps, plans, promises, files, and problems"),
    "job explain": ("tarazu.cli.explain", "say why a file lies where it lies"),
    "job map": ("tarazu.cli.map", "print a placement map"),
    "job check-app": (
        "tarazu.cli.check_app",
        "say which files of a program the placement library would not see",
    ),
    "history": (
        "tarazu.cli.history",
        "remembered runs: what they did, what comes next, what could be gained",
    ),
    "history list": ("tarazu.cli.history.list_", "list applications, or the runs of one"),
    "history show": ("tarazu.cli.history.show", "what one run created"),
    "history predict": ("tarazu.cli.predict", "forecast the files of an application's next run"),
    "history report": (
        "tarazu.cli.report",
        "say which remembered runs would have gained by placement, and why not the others",
    ),
    "history db": ("tarazu.cli.db", "show the interaction database"),
    "history import": (
        "tarazu.cli.history.import_",
        "learn from Darshan logs, or take in an exported history",
    ),
    "history export": ("tarazu.cli.history.export", "write runs as CSV, JSON or Parquet"),
    "history gather": (
        "tarazu.cli.history.gather",
        "remember steps that the site recorded without `tarazu run`",
    ),
    "history forget": ("tarazu.cli.history.forget", "remove runs"),
    "status": ("tarazu.cli.status", "ask the daemons how they are"),
    "top": ("tarazu.cli.top", "OSSs and OSTs live: fill, rates, promises, problems"),
    "doctor": (
        "tarazu.cli.doctor",
        "check this node: what tarazu needs, what is wrong, how to fix it",
    ),
    "doctor collect": ("tarazu.cli.collect", "say which statistics this node gives, and from where"),
    "init": ("tarazu.cli.init", "set this node up: settings, keys, the way to mdsd, and what is missing"),
    "config": ("tarazu.cli.config", "the settings in force, a file to start from, mistakes in one; keys"),
    "config keys": ("tarazu.cli.keys", "create, list and revoke the keys that authenticate the daemons"),
    "disable": ("tarazu.cli.disable", "switch tarazu off: one job, all of yours, or the whole site"),
    "enable": ("tarazu.cli.enable", "undo `disable`"),
    "demo": (
        "tarazu.sim.cli.demo",
        "record, predict, allocate and place on the testbed, and show the balance",
    ),
    "sim": (
        "tarazu.sim.cli.sim",
        "simulate clusters: one case, whole studies with a report, validation; a testbed",
    ),
    "sim scenarios": (
        "tarazu.sim.cli.scenarios",
        "the paper's scenarios under every policy, beside their bounds",
    ),
    "sim testbed": ("tarazu.sim.cli.testbed", "an emulated Lustre on this machine, for trying and testing"),
}
"""A command's words → (its module, one line of help). A group that does nothing has a module for its text, or none."""
ANALYSIS = "tarazu.sim."
"""Commands whose modules, or what they need, are a part that not every node has: the package tarazu-analysis."""
PAPER_VIEW = "tarazu.sim.cli.paper_view"
"""What prints `history db show --paper`: the paper's tables are a study's matter."""
GROUPS = {
    "your jobs": ("run", "job", "history"),
    "the system": ("status", "top", "doctor", "init", "config"),
    "what can be changed": ("disable", "enable"),
    "studies": ("demo", "sim"),
}
"""Heading of `--help` → commands below it, without those of parts."""


def groups() -> dict[str, tuple[str, ...]]:
    """GROUPS, and the commands of parts."""
    from tarazu.part import installed

    found = dict(GROUPS)
    for part in installed().values():
        if own := [name for name in part.commands if " " not in name]:
            found[part.heading] = (*found.get(part.heading, ()), *own)
    return found


def commands() -> dict[str, tuple[str, str]]:
    """COMMANDS, and those of parts. To find them takes as long as Python's start: plain `tarazu run` does not."""
    from tarazu.part import installed

    return COMMANDS | {name: of for part in installed().values() for name, of in part.commands.items()}


def is_of_analysis(name: str) -> bool:
    """Whether a command needs the package tarazu-analysis."""
    return bool(_extra(name)) or commands()[name][0].startswith(ANALYSIS)


def _extra(name: str) -> str:
    """Of the part that has the command; empty: none has, or it needs nothing."""
    from tarazu.part import installed

    return next((part.extra for part in installed().values() if name in part.commands), "")


ABOUT = "balance I/O on Lustre, from the application's open() to the disk"


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point: returns the exit status; bad input is one line on standard error and status 2."""
    words = list(sys.argv[1:] if argv is None else argv)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed: `tarazu init <&-`
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    if argv is None and words[:1] == ["run"]:
        gc.disable()  # until the program is started: modules are no garbage, and to look for some takes a while
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("tarazu", _as_it_is)
        sys.stdout.reconfigure(errors="tarazu")
        if sys.stdout.isatty():
            from tarazu.cli.output import Terminal

            sys.stdout = Terminal(sys.stdout)
    try:
        status = guarded(lambda: _dispatch(words), "tarazu", debug="--debug" in words)
        if argv is None and words[:1] == ["run"]:
            _leave(status)
        return _written(status)
    except SystemExit as ended:  # of --help
        if not ended.code and (status := _written(0)):
            raise SystemExit(status) from None
        raise
    except BrokenPipeError:
        _write_no_more()
        return 141
    except KeyboardInterrupt:
        return 130


def _as_it_is(error: UnicodeError) -> tuple[str | bytes, int]:
    """Names need not be UTF-8: they come out as they are. What the terminal's characters lack is written out."""
    with contextlib.suppress(UnicodeEncodeError):
        return codecs.lookup_error("surrogateescape")(error)
    return codecs.backslashreplace_errors(error)


def _written(status: int) -> int:
    """Nothing waits to be written any more: Python would end with 120 and words of its own where it cannot be."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _write_no_more()
        return 141
    except OSError as error:
        print(f"tarazu: {error.strerror}", file=sys.stderr)
        _write_no_more()
        return status or TarazuError.exit_status
    return status


def _write_no_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _leave(status: int) -> NoReturn:
    """End at once: to take the interpreter down would take as long as to start it, and somebody waits for his shell."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _dispatch(words: list[str]) -> int:
    if words[:1] == ["help"] and len(words) > 1:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        print(top_help(), end="")
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        from importlib.metadata import version

        print(f"tarazu {version('tarazu')}")
        return 0
    if words[0] not in COMMANDS and words[0] not in commands():
        names = ", ".join(below(""))
        meant = _parser().likely(words[0], "tarazu", below(""))
        print(shown(f"tarazu: expected a command among {names}, found {words[0]!r}{meant}"), file=sys.stderr)
        return 2
    try:
        if words[0] == "run":
            from tarazu.cli import run

            if asked := run.plainly(words[1:]):
                return guarded(lambda: run.execute(asked), "tarazu run", debug=asked.debug)
        return guarded(lambda: _called(words), "tarazu", debug="--debug" in words)
    except ModuleNotFoundError as error:
        if "--debug" in words:
            raise
        called = max((name for name in commands() if words[: len(name.split())] == name.split()), key=len)
        package, extra = "tarazu", "mds,client"
        if str(error.name).startswith("tarazu.") or is_of_analysis(called):
            package, extra = "tarazu-analysis", _extra(called) or "sim,bursts"
        needed = f"the package {package}, or pip install '.[{extra}]' in a clone"
        print(f"tarazu {called}: expected {needed}; found no {error.name}", file=sys.stderr)
        return BadInput.exit_status


def _called(words: list[str]) -> int:
    options = command(words[0], words[1:]).parse_args(words[1:])
    return guarded(lambda: int(options.execute(options)), options.says, debug=options.debug)


def _parser() -> type[Parser]:
    """Imported when a command line is no plain `tarazu run`, which has no time for it."""
    from tarazu.cli.parser import Parser

    Parser.commands = commands()
    return Parser


def command(name: str, words: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """A command's parser with its verbs', of the empty one that of all; `words`: only these verbs are wanted whole.

    Only modules of what is wanted are imported.
    """
    import argparse

    from tarazu.cli.output import common_options

    parser = _parser()(
        prog=f"tarazu {name}".strip(),
        description=description(name),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common_options()],
    )
    parser.set_defaults(config=None, debug=False)
    _fill(parser, name, words)
    return parser


def _fill(parser: argparse.ArgumentParser, name: str, words: Sequence[str] | None) -> None:
    import argparse

    from tarazu.cli.output import common_options

    module_name = commands()[name][0] if name else ""
    module: Any = importlib.import_module(module_name) if module_name else None
    if hasattr(module, "configure"):
        module.configure(parser)
        parser.set_defaults(execute=module.execute, says=parser.prog)
    verbs = below(name)
    if not verbs:
        return
    own = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    sub = own[0] if own else parser.add_subparsers(required=not hasattr(module, "execute"), metavar="VERB")
    for verb in verbs:
        words_of = f"{name} {verb}".strip()
        if words is not None and verb not in words:
            sub.add_parser(verb, help=commands()[words_of][1])
            continue
        one = sub.add_parser(
            verb,
            help=commands()[words_of][1],
            description=description(words_of),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[common_options()],
        )
        _fill(one, words_of, words)


def description(name: str) -> str:
    """What a command says of itself; imports its module."""
    module, text = commands()[name] if name else ("", ABOUT)
    return (
        (importlib.import_module(module).__doc__ if module else "") or f"{text[:1].upper()}{text[1:]}."
    ).strip()


def guarded(work: object, program: str, *, debug: bool = False) -> int:
    """Call `work()`; an error of tarazu's tree becomes one line on standard error and its exit status, and so does,
    as a last resort, what nobody thought of.
    """
    try:
        return int(work())  # type: ignore[operator]
    except (BrokenPipeError, ModuleNotFoundError):
        raise  # for who calls
    except Exception as error:
        if debug:
            raise
        if isinstance(error, TarazuError):
            text, status = str(error), error.exit_status
        elif isinstance(error, OSError) and error.strerror:
            where = f"{error.filename}: " if error.filename else ""
            text, status = f"{where}{error.strerror}", TarazuError.exit_status
        else:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            text, status = f"{what} (a mistake of tarazu's: --debug shows where)", TarazuError.exit_status
        print(shown(text if text.startswith(f"{program}: ") else f"{program}: {text}"), file=sys.stderr)
        return status


def below(name: str) -> list[str]:
    """The verbs of a command; of the empty one, the commands."""
    start = f"{name} " if name else ""
    return [
        words.removeprefix(start)
        for words in (COMMANDS if name.partition(" ")[0] == "run" else commands())
        if words.startswith(start) and " " not in words[len(start) :]
    ]


def top_help() -> str:
    """What `tarazu --help` prints."""
    parts = [f"usage: tarazu COMMAND [OPTIONS]\n\n{description('')}\n"]
    for heading, names in groups().items():
        parts.append(f"\n{heading}:\n")
        for name in names:
            parts.append(f"  {name:<8} {commands()[name][1]}\n")
            verbs = ", ".join(below(name))
            parts.append(f"           ({verbs})\n" if verbs else "")
    parts.append("\n`tarazu COMMAND --help` says more. First steps: docs/quickstart.md.\n")
    return "".join(parts)
