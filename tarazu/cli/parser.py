"""The parser of all commands: an error is one line, and says what was likely meant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any, ClassVar, NoReturn

from tarazu.names import did_you_mean, near, shown

ELSEWHERE = 0.75
"""How like a verb of another command a word must be, to be taken for it."""


class Parser(argparse.ArgumentParser):
    """As argparse's, but for what it says of mistakes."""

    commands: ClassVar[Collection[str]] = ()
    """All of tarazu's, with their verbs."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """What is behind `--` is the command, also where options stand before it: argparse refuses that."""
        words = list(sys.argv[1:] if args is None else args)
        command: list[str] = []
        if "--" in words and any(of.dest == "command" and of.nargs == "*" for of in self._actions):
            at = words.index("--")
            words, command = words[:at], words[at + 1 :]
        found, unknown = super().parse_known_args(words, namespace)
        if command:
            found.command = command
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """End with status 2."""
        kind, _, rest = message.partition("unrecognized arguments: ")
        if not kind and rest:
            word = next((w for w in rest.split() if w.startswith("-")), "").partition("=")[0]
            message += did_you_mean(word, set(_options(self))) if word else ""
        elif verbs := [
            name for of in _subparsers(self) if message.endswith(f": {of.metavar}") for name in of.choices
        ]:
            message = f"expected one of {', '.join(verbs)} (see `{self.prog} --help`)"
        elif " required: " in message:
            message += f" (see `{self.prog} --help`)"
        print(shown(f"{self.prog}: {message}"), file=sys.stderr)
        self.exit(2)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            names = [str(name) for name in action.choices or ()]
            if isinstance(action, argparse._SubParsersAction):
                found = f"expected one of {', '.join(names)}; found {value!r}"
                self.error(found + self.likely(str(value), self.prog, names))
            error.message += did_you_mean(str(value), names)
            raise

    @classmethod
    def likely(cls, word: str, prog: str, verbs: Collection[str]) -> str:
        """`; did you mean …?` for a word that is no command there: a verb of that name elsewhere, or a near one."""
        elsewhere = [name for name in cls.commands if name.split()[-1] == word]
        if not elsewhere and not near(word, verbs, 1):
            close = near(word, {name.split()[-1] for name in cls.commands}, 1, ELSEWHERE)
            elsewhere = [name for name in cls.commands if name.split()[-1] in close]
        if elsewhere:
            return f"; did you mean {' or '.join(f'`tarazu {name}`' for name in elsewhere)}?"
        verb = near(word, verbs, 1)
        return f"; did you mean `{prog} {verb[0]}`?" if verb else ""


def _subparsers(parser: argparse.ArgumentParser) -> list[argparse._SubParsersAction[Any]]:
    return [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Of a parser and all below it."""
    for action in parser._actions:
        yield from action.option_strings
    for of in _subparsers(parser):
        for one in of.choices.values():
            yield from _options(one)
