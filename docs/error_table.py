"""The tables of docs/errors.md: families of errors, reasons why files are left to Lustre, problems that doctor finds.

Every error that the sources raise belongs to one family; a new kind of error without one is an error here. Each example
is provoked while the page is made. What doctor finds, and what it says to do, is read off its sources.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from error_families import COMMANDS, DAEMONS, Family

from tarazu import cli, errors, left

SOURCE = Path(__file__).parents[1] / "tarazu"
MOST_CHARACTERS = 200
"""Of an example."""


class Raised(NamedTuple):
    error: str
    """Its class."""
    room: str
    """The file below tarazu/."""


@functools.cache
def raised() -> list[Raised]:
    """Every place of the sources that raises an error of tarazu's tree."""
    bases: dict[str, set[str]] = {}
    raises: list[Raised] = []
    for path in sorted(SOURCE.rglob("*.py")):
        # One at a time: hundreds of trees in memory take the collector longer than their reading.
        for node in _statements(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(map(_name, node.bases))
            elif isinstance(node, ast.Raise):
                raises.append(Raised(_name(node.exc), str(path.relative_to(SOURCE))))
    ours = {"TarazuError"}
    while new := {name for name, of in bases.items() if of & ours} - ours:
        ours |= new
    return [each for each in raises if each.error in ours]


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Classes and raises are among these alone; a tree has twenty times more nodes."""
    todo = deque([tree])
    while todo:
        yield (node := todo.popleft())
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            below = getattr(node, part, ())
            todo.extend(below if isinstance(below, list) else ())


def _name(node: ast.AST | None) -> str:
    """`BadInput` of `BadInput(…)` and of `errors.BadInput`."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def family_of(error: Raised) -> Family:
    """The first that has its class and its room."""
    for family in (*DAEMONS, *COMMANDS):
        if error.error in family.classes and error.room.startswith(family.rooms):
            return family
    raise ValueError(f"{error.room}: expected {error.error} to be of a family in docs/error_families.py")


def example(family: Family) -> tuple[str, int]:
    """(the line that is printed, the exit status) of the family's command, run in an empty directory."""
    with (
        tempfile.TemporaryDirectory() as directory,
        contextlib.chdir(directory),
        contextlib.ExitStack() as stack,
    ):
        for name, text in ({"tarazu.toml": ""} | dict(family.files)).items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text.replace("HERE", directory))
            Path(name).chmod(0o600)
        environ = {
            "TARAZU_CONFIG": "tarazu.toml",
            "TARAZU_ROOT": directory,
            "HOME": directory,
            "TERM": "dumb",
        }
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        stack.enter_context(mock.patch.dict(os.environ, kept | environ, clear=True))
        if family.around:
            stack.enter_context(family.around())
        said, status = _caught(family.raises) if family.raises else _run(shlex.split(family.command))
        # The command stands beside it.
        said = re.sub(r"^tarazu[a-z -]*: ", "", said)
        return said.replace(f"{directory}/", "").replace(directory, "/"), status


def _caught(raises: Callable[[], object]) -> tuple[str, int]:
    try:
        raises()
    except errors.TarazuError as error:
        return str(error), error.exit_status
    raise ValueError(f"{raises.__name__}: expected an error")


def _run(words: list[str]) -> tuple[str, int]:
    if words[0] != "tarazu":
        module = words[0].removeprefix("tarazu-")
        code = f"import sys; from tarazu.daemons.{module}.service import main; sys.exit(main())"
        done = subprocess.run(
            [sys.executable, "-c", code, *words[1:]], capture_output=True, text=True, timeout=60, check=False
        )
        lines = done.stderr.strip().splitlines()
        return re.sub(r"^(<\d>)?(\S+: )?CRITICAL: ", "", lines[-1]), done.returncode
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = cli.main(words[1:])
        except SystemExit as ended:
            status = int(ended.code or 0)
    said = err.getvalue().strip().splitlines() or out.getvalue().strip().splitlines()[:1]
    return said[-1], status


def families(chosen: Sequence[Family]) -> str:
    """A table of these families."""
    rows = [("error", "example", "cause", "what to do", "exit status")]
    for family in chosen:
        said, status = example(family)
        if len(said) > MOST_CHARACTERS:
            said = said[: MOST_CHARACTERS - 1] + "…"
        said = f"`{said.replace('`', chr(39))}`"
        shown = f"`{family.command}`: {said}" if family.command else said
        rows.append((family.title, shown, family.cause, family.cure, str(status)))
    return _table(rows)


def reasons() -> str:
    """Why files are left to Lustre."""
    rows = [("word", "what it means", "what to do")]
    rows += [
        (f"`{word}`", f"{_prose(means)}.", f"{_prose(cure)}.") for word, (means, cure) in left.REASONS.items()
    ]
    return _table(rows)


def _prose(text: str) -> str:
    """A sentence: with a capital, settings as code."""
    parts = text.split("`")
    parts[::2] = [
        re.sub(r"\b(?:allocate|layout|mdsd|run)\.[a-z_]+…?|\bTARAZU_\w+", r"`\g<0>`", each)
        for each in parts[::2]
    ]
    text = "`".join(parts)
    return text if re.match("clientd|mdsd|tarazu", text) else text[:1].upper() + text[1:]


def doctor() -> str:
    """What `tarazu doctor` finds, a heading for each topic, which is what it links to."""
    from tarazu.doctor import examine

    parts = []
    for topic in examine.TOPICS:
        function = topic.look
        path = SOURCE.joinpath(*function.__module__.split(".")[1:]).with_suffix(".py")
        if examine.anchor(topic) != f"doctor-{topic.name.lower().replace(' ', '-')}":
            continue  # in the table of another topic
        rows = [("check", "problem", "what to do"), *sorted(set(_problems(ast.parse(path.read_text()))))]
        parts.append(f"### Doctor: {topic.name}\n\n{_table(rows)}")
    return "\n\n".join(parts)


def _problems(tree: ast.Module) -> Iterator[tuple[str, ...]]:
    """Of each call of `fail` and `warn`: the check, what was found, what to do; in capitals what is known only then."""
    own = _assigned(tree.body)
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        texts = _assigned(ast.walk(function))
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and _name(node) in ("fail", "warn"):
                before = {name: value for (name, line), value in (own | texts).items() if line < node.lineno}
                yield tuple(_text(argument, before) for argument in node.args)


def _assigned(nodes: Iterable[ast.AST]) -> dict[tuple[str, int], ast.expr]:
    """(name, line) → value, the last line last."""
    found = {
        (target.id, node.lineno): node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return dict(sorted(found.items(), key=lambda each: each[0][1]))


def _text(node: ast.expr, texts: Mapping[str, ast.expr]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, texts) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, {})
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, texts) + _text(node.right, texts)
    if isinstance(node, ast.IfExp):
        return f"{_text(node.body, texts)}; or: {_text(node.orelse, texts)}"
    if isinstance(node, ast.Name) and isinstance(
        texts.get(node.id), (ast.Constant, ast.JoinedStr, ast.IfExp)
    ):
        return _text(texts[node.id], {name: value for name, value in texts.items() if name != node.id})
    if isinstance(node, ast.Call) and _name(node) == "str":
        return _text(node.args[0], texts)
    if isinstance(node, ast.Attribute) and node.attr in ("name", "stem", "strerror", "parent", "where"):
        return _text(node.value, {})
    return node.id.upper().replace("_", " ") if isinstance(node, ast.Name) else "…"


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def table() -> str:
    """All of it."""
    used = {family_of(error).title for error in raised()}
    if unused := [
        family.title for family in (*COMMANDS, *DAEMONS) if family.classes and family.title not in used
    ]:
        raise ValueError(
            f"docs/error_families.py: expected errors of every family in the sources, found none of {unused}"
        )
    return "\n\n".join(
        [
            "## Commands",
            families(COMMANDS),
            "## Daemons",
            families(DAEMONS),
            "## Files left to Lustre",
            f"A line of `jobs.log` says `why='…'`; the placement library's own outcomes are {_outcomes()}.",
            reasons(),
            "## Doctor",
            "`tarazu doctor` names the table below of each problem that it finds (`see` with `--json`).",
            doctor(),
        ]
    )


def _outcomes() -> str:
    pairs = [f"`{name}` ({left.OF_OUTCOME[name] or 'placed'})" for name in left.OF_OUTCOME]
    return f"{', '.join(pairs[:-1])} and {pairs[-1]}"
