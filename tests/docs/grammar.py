"""Whether what the pages let one type could be typed: programs, verbs, options, units, modules that exist.

A command in a block of code must be complete. In prose it may be a mention, such as `tarazu history db show`: then what
is there must exist, and something may be missing.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import re
import tomllib
from collections.abc import Callable
from functools import cache

from tarazu.cli import below, command
from tarazu.daemons.programs import programs
from tests.docs.reading import ROOT, Typed

SYSTEMD = ROOT / "tarazu/daemons/systemd"
UNITS = {path.name for path in (*SYSTEMD.glob("tarazu*"), *(ROOT / "tarazu/parts").glob("*/tarazu*.service"))}
PLAIN = set(
    ". apt apt-get bash cat cd chmod chown clush cp cut date dd done dpkg echo eval export find for git grep head "
    "id install less lctl lfs lnetctl ln ls man mkdir mount mpirun mv printf read rm rpm sacct sbatch scontrol sh "
    "source sleep srun sudo systemd-analyze systemd-sysusers systemd-tmpfiles tail touch tar test true unset "
    "umount wait".split()
)
"""Programs of others, of which nothing but their name is known here."""


def problem(typed: Typed) -> str:
    """What is wrong with a command; empty when nothing is."""
    if typed.words[-1] == "…" or (typed.in_prose and any("…" in word for word in typed.words)):
        return _mention(typed.words) if _ours(typed.words[0]) else ""
    words = tuple(word.strip("[]") if re.fullmatch(r"\[[A-Z]+\]", word) else word for word in typed.words)
    check = _CHECKS.get(words[0].rpartition("/")[2])
    if check is None and _ours(words[0]):
        check = _program
    if check is None:
        known = typed.in_prose or words[0] in PLAIN or words[0].startswith(("/", "./", "$"))
        return "" if known else f"an unknown program: {words[0]}"
    found = check(words)
    return _mention(words) if found and typed.in_prose and _ours(words[0]) else found


def whole(typed: Typed) -> bool:
    """Whether a command of the prose can be typed as it stands: more than a name and its verbs, and nothing left out.

    A daemon goes on until it is told to end: none, but for one look.
    """
    words = typed.words
    if not _ours(words[0]) or "…" in " ".join(words) or _program(words):
        return False
    if words[0] != "tarazu":
        return "--once" in words
    parser, rest = _parser(words[0], words[1]), list(words[2:])
    while rest and rest[0] in (verbs := _verbs(parser)):
        parser = verbs[rest.pop(0)]
    return bool(rest) and rest[-1] not in ("--", "--help")


def _ours(name: str) -> bool:
    return name == "tarazu" or name in programs()


@cache
def _parser(program: str, name: str) -> argparse.ArgumentParser:
    if program == "tarazu":
        return command(name)
    parser: argparse.ArgumentParser = importlib.import_module(programs()[program]).command_line()
    return parser


def _program(words: tuple[str, ...]) -> str:
    """Parsed as the program itself would."""
    rest = words[1:]
    name = ""
    if words[0] == "tarazu":
        if rest in (("--help",), ("--version",)):
            return ""
        if not rest or rest[0] not in below(""):
            return f"no command of tarazu: {' '.join(rest[:1])!r}"
        name, rest = rest[0], rest[1:]
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(errors):
        try:
            _parser(words[0], name).parse_args(list(rest))
        except SystemExit as ended:
            if ended.code:
                return errors.getvalue().strip().rpartition("\n")[2]
    return ""


def _mention(words: tuple[str, ...]) -> str:
    """Each verb and each option exists."""
    rest = list(words[1:])
    if words[0] == "tarazu" and (not rest or rest[0] == "COMMAND"):
        return ""
    if words[0] == "tarazu" and rest[0] not in below(""):
        return f"no command of tarazu: {rest[0]!r}"
    parser = _parser(words[0], rest.pop(0) if words[0] == "tarazu" else "")
    while rest and (verbs := _verbs(parser)):
        if rest[0] not in verbs:
            if not rest[0].startswith("-"):
                return f"no verb of {parser.prog}: {rest[0]!r}"
            break
        parser = verbs[rest.pop(0)]
    known = {flag for action in parser._actions for flag in action.option_strings}
    for word in rest:
        if word == "--":
            break
        if word.startswith("--") and word.partition("=")[0] not in known:
            return f"no option of {parser.prog}: {word!r}"
    return ""


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _make(words: tuple[str, ...]) -> str:
    verbs = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    return "".join(
        f"no verb of make: {word!r}" for word in words[1:] if "=" not in word and word not in verbs
    )


def _python(words: tuple[str, ...]) -> str:
    rest = words[1:]
    if rest and rest[0] == "-m" and rest[1].startswith(("tarazu.", "tests.")):
        return "" if importlib.util.find_spec(rest[1]) else f"no module {rest[1]}"
    if rest and rest[0].startswith(("tests/", "docs/")) and not (ROOT / rest[0]).exists():
        return f"no file {rest[0]}"
    return ""


def _systemctl(words: tuple[str, ...]) -> str:
    units = [word for word in words[1:] if word.startswith("tarazu")]
    return "".join(
        f"no unit {unit!r}" for unit in units if f"{unit.removesuffix('.service')}.service" not in UNITS
    )


def _pip(words: tuple[str, ...]) -> str:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {
        extra
        for word in words
        for found in re.findall(r"^tarazu\[([\w,]+)\]", word)
        for extra in found.split(",")
    }
    return "".join(f"no extra of tarazu: {extra}" for extra in sorted(named - set(extras)))


def _install(words: tuple[str, ...]) -> str:
    files = [word.removeprefix("$dir/") for word in words if word.startswith("$dir/")]
    return "".join(
        f"no file of the package: {name}"
        for name in files
        if name not in UNITS and not (SYSTEMD / name).exists()
    )


def _ssh(words: tuple[str, ...]) -> str:
    """What runs on the other node, where it is one command."""
    inner = words[2:] if len(words) > 2 and not words[1].startswith("-") else ()
    return problem(Typed("", 0, inner, False)) if inner and not any(" " in word for word in inner) else ""


def _from_a_clone(words: tuple[str, ...]) -> str:
    """`uvx --from '.[whatif]' tarazu …`: the extra and the command exist."""
    _, _, spec, *rest = words
    return _pip(("pip", "install", f"tarazu{spec.removeprefix('.')}")) or _program(tuple(rest))


_CHECKS: dict[str, Callable[[tuple[str, ...]], str]] = {
    "make": _make,
    "python": _python,
    "python3": _python,
    "systemctl": _systemctl,
    "pip": _pip,
    "uvx": _from_a_clone,
    "install": _install,
    "ssh": _ssh,
}
