"""The man pages: tarazu(1), one of each command, one of each daemon, and tarazu.toml(5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version

from tarazu.cli import COMMANDS
from tarazu.cli.manual import described, roff, settings_page
from tarazu.cli.manual.described import Command, Option

COMMANDS_MANUAL, DAEMONS_MANUAL = "User commands", "Administration"
STATUS = (
    ("0", "It did what it was asked."),
    ("1", "It could not, or found what should not be; one line on standard error says which."),
    ("2", "The command line, the configuration or a file is not what it must be."),
)
STATUS_OF_DAEMONS = (("0", "It was told to end."), STATUS[1], STATUS[2])
RUN_STATUS = (
    "The program's own, and its own signal; 127 where there is no such program, 126 where it cannot be run."
)
FILES = (
    ("/etc/tarazu/tarazu.toml", "the settings, tarazu.toml(5)"),
    ("/etc/tarazu/conf.d/*.toml", "more of them, read after it in the order of their names"),
)
FILES_OF_USERS = (
    ("~/.local/state/tarazu/jobs.log", "a line for each job step that was led"),
    ("~/.local/state/tarazu/history", "the remembered runs"),
)
VARIABLES = (
    ("TARAZU_CONFIG", "instead of /etc/tarazu/tarazu.toml"),
    ("TARAZU_SECTION_NAME", "one setting, before all files: TARAZU_RUN_MODE is run.mode"),
    ("TARAZU_DISABLE", "1: programs run without tarazu"),
)


def all_pages() -> dict[str, str]:
    """File name → roff. Imports every command and daemon."""
    found = {"tarazu.1": top_page(), "tarazu.toml.5": settings_page.page(version("tarazu"))}
    for command in described.commands():
        found[f"{_page(command)}.1"] = command_page(command)
    for daemon, opening in described.daemons():
        found[f"{daemon.name}.8"] = daemon_page(daemon, opening)
    return found


def top_page() -> str:
    return roff.document(_top())


def _top() -> Iterator[str]:
    top = described.top()
    yield from roff.heading("tarazu", 1, version("tarazu"), top.summary, COMMANDS_MANUAL)
    yield from _synopsis([top])
    yield roff.section("DESCRIPTION")
    yield from roff.text(
        "Predicts which files a job will write, asks a daemon beside the MDS on which OSTs they lie best, and has "
        "each created there, by a library that `tarazu run` preloads. Nothing is set or placed before a site says so "
        "(`run.mode`, and the modes of the other levers); `tarazu disable` switches it off at once."
    )
    yield roff.section("COMMANDS")
    for name, (_, text) in COMMANDS.items():
        yield from roff.term(roff.bold(f"tarazu-{name}(1)"), text)
    yield from _rest(top.options, STATUS, (*FILES, *FILES_OF_USERS))
    daemons = [f"{daemon.name}(8)" for daemon, _ in described.daemons()]
    yield from _see_also([*(f"tarazu-{name}(1)" for name in COMMANDS), "tarazu.toml(5)", *daemons])


def command_page(command: Command) -> str:
    return roff.document(_command(command))


def _command(command: Command) -> Iterator[str]:
    name = _page(command)
    yield from roff.heading(name, 1, version("tarazu"), command.summary, COMMANDS_MANUAL)
    yield from _synopsis([command, *_all_verbs(command)])
    yield roff.section("DESCRIPTION")
    yield from roff.text(command.description)
    if command.arguments:
        yield roff.section("ARGUMENTS")
        yield from _terms(command.arguments)
    if command.verbs:
        yield roff.section("VERBS")
        for verb in _all_verbs(command):
            yield roff.subsection(verb.name)
            yield from roff.text(verb.description or verb.summary)
            own = [o for o in verb.options if o not in command.options]
            yield from _terms((*verb.arguments, *own))
    status = (("N", RUN_STATUS),) if name == "tarazu-run" else STATUS
    files = (*FILES, *(FILES_OF_USERS if name in ("tarazu-run", "tarazu-history", "tarazu-predict") else ()))
    yield from _rest(command.options, status, files)
    yield from _see_also(["tarazu(1)", "tarazu.toml(5)"])


def daemon_page(daemon: Command, opening: str) -> str:
    """`opening`: of the daemon's module."""
    return roff.document(_daemon(daemon, opening))


def _daemon(daemon: Command, opening: str) -> Iterator[str]:
    summary = daemon.summary[:1].lower() + daemon.summary[1:].rstrip(".")
    yield from roff.heading(daemon.name, 8, version("tarazu"), summary, DAEMONS_MANUAL)
    yield from _synopsis([daemon])
    yield roff.section("DESCRIPTION")
    yield from roff.text(opening)
    yield from _rest(daemon.options, STATUS_OF_DAEMONS, FILES)
    yield roff.section("SIGNALS")
    yield from roff.term(roff.bold("SIGTERM"), "ends it; what it holds is written first")
    yield from roff.term(
        roff.bold("SIGHUP"), "the settings are read again; its log says which need a restart"
    )
    yield from _see_also(["tarazu(1)", "tarazu-doctor(1)", "tarazu-status(1)", "tarazu.toml(5)"])


def _synopsis(commands: Iterable[Command]) -> Iterator[str]:
    yield roff.section("SYNOPSIS")
    for number, command in enumerate(commands):
        if number:
            yield ".br"
        words = command.usage.removeprefix(command.name).strip()
        yield f"{roff.bold(command.name)} {roff.escape(words)}"


def _rest(
    options: Iterable[Option], status: Iterable[tuple[str, str]], files: Iterable[tuple[str, str]]
) -> Iterator[str]:
    yield roff.section("OPTIONS")
    yield from _terms(options)
    for title, rows in (("ENVIRONMENT", VARIABLES), ("FILES", files), ("EXIT STATUS", status)):
        yield roff.section(title)
        for word, text in rows:
            yield from roff.term(roff.bold(word), text)


def _terms(options: Iterable[Option]) -> Iterator[str]:
    for option in options:
        flags = ", ".join(map(roff.bold, option.flags))
        yield from roff.term(" ".join(filter(None, (flags, roff.italic(option.argument)))), option.help)


def _see_also(pages: Iterable[str]) -> Iterator[str]:
    yield roff.section("SEE ALSO")
    yield ", ".join(map(roff.bold, pages))


def _all_verbs(command: Command) -> list[Command]:
    return [each for verb in command.verbs for each in (verb, *_all_verbs(verb))]


def _page(command: Command) -> str:
    return command.name.replace(" ", "-")
