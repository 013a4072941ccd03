"""docs/commands.md: every command, daemon, verb and option, from the parsers that `--help` prints."""

from __future__ import annotations

from collections.abc import Iterator

from tarazu.cli.manual import described
from tarazu.cli.manual.described import Command, Option

OPENING = """# Commands

Made by `make docs` from what `--help` prints; the same is in the man pages. `tarazu COMMAND --help` says what the
version that is installed can do.

Exit status of all but `tarazu run`, whose is the program's own: 0 it did what it was asked, 1 it could not, or found
what should not be, 2 the command line, a file or the configuration is not what it must be. Each takes
`--debug` (tracebacks instead of one line) and `--config FILE`.
"""
SHOWN_ONCE = {"--help", "--debug", "--config"}


def page() -> str:
    """The whole page."""
    parts = [OPENING]
    for command in described.commands():
        parts += _section(command, 2)
    for daemon, _ in described.daemons():
        parts += _section(daemon, 2)
    return "\n".join(parts).rstrip() + "\n"


def _section(command: Command, level: int) -> Iterator[str]:
    yield f"{'#' * level} {command.name}\n"
    summary, _, rest = command.description.partition("\n")
    yield f"{_escaped(summary or command.summary)}\n"
    yield f"```text\n{command.usage}\n```\n"
    if rest.strip():
        yield f"```text\n{rest.strip(chr(10))}\n```\n"
    rows = [row for row in (*command.arguments, *command.options) if not SHOWN_ONCE & set(row.flags)]
    if rows:
        yield "| option | what |\n|---|---|"
        yield from map(_row, rows)
        yield ""
    for verb in command.verbs:
        yield from _section(verb, level + 1)


def _row(option: Option) -> str:
    named = ", ".join(option.flags)
    words = f"{named} {option.argument}".strip()
    return f"| `{words.replace('|', chr(92) + '|')}` | {_escaped(option.help)} |"


def _escaped(text: str) -> str:
    """As prose of a page: what Markdown would take for its own is written out, but for code in backticks."""
    parts = " ".join(text.split()).split("`")
    prose = slice(None, None, 2)
    for sign in "\\*_<>[]":
        parts[prose] = [part.replace(sign, f"\\{sign}") for part in parts[prose]]
    return "`".join(parts).replace("|", "\\|")
