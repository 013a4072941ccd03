"""The table of metrics of docs/metrics.md, read off the sources of the daemons: each family is named in a call.

Nothing runs: some families are there only with routers, once a report has come.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tarazu.part import Part
from tarazu.wire.reports import STATISTICS

TARAZU = Path(__file__).parents[1] / "tarazu"
_CALLS = {"gauge": "gauge", "counter": "counter", "counters": "counter", "histogram": "histogram"}
_SOURCES = {
    "`mdsd`": "parts/metrics/mdsd.py",
    "`clientd`": "parts/metrics/clientd.py",
    "`ossd`": "parts/metrics/ossd.py",
    "All of them": "parts/metrics/text.py",
}
_OF_PART = ("mdsd.py", "ossd.py", "figures.py")
_SOCKETS = TARAZU / "wire" / "transport.py"
_SOCKET = ("socket",)
_OF_TARGETS = ("component", "target", "fs")
"""Labels of all families of targets and servers; the page says so."""


class Family(NamedTuple):
    name: str
    """As Prometheus shows it: a counter ends in `_total`."""
    kind: str
    labels: tuple[str, ...]
    text: str


def of_part(part: Part) -> list[Family]:
    """Of all its daemons, and what it has in mdsd and ossd; of the part that shows them all, those of the core."""
    if part.name == "metrics":
        return [family for of in all_families().values() for family in of]
    sources = [path for name in _OF_PART if (path := part.folder / name).exists()]
    sources += sorted(part.folder.rglob("service.py"))
    return [family for source in sources for family in _families(source)]


def _families(source: Path) -> list[Family]:
    """In the order of the source."""
    tree = ast.parse(source.read_text())
    constants = _constants(tree)
    found = []
    for node in _calls(tree):
        if isinstance(node, ast.DictComp):
            found += _comprehended(node, constants)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found += _called(node, node.func.id, constants)
    return sorted(set(found), key=lambda family: [f.name for f in found].index(family.name))


def _calls(tree: ast.Module) -> Iterator[ast.AST]:
    """Of a service only its `figures`."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    services = [
        function
        for function in functions
        if function.name == "figures" and function.args.args[0].arg == "self"
    ]
    for part in services or [tree]:
        yield from ast.walk(part)


def _constants(tree: ast.Module) -> dict[str, object]:
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = _literal(node.value)
            except ValueError:
                continue
    return found


def _literal(node: ast.expr) -> object:
    """A value as it stands there; what is unpacked into a tuple is a server's declared statistics."""
    if not isinstance(node, ast.Tuple):
        return ast.literal_eval(node)
    declared = [(of.metric, of.text) for of in STATISTICS.values()]
    rows = ((declared if isinstance(each, ast.Starred) else [ast.literal_eval(each)]) for each in node.elts)
    return tuple(row for some in rows for row in some)


def _called(node: ast.Call, function: str, constants: dict[str, object]) -> Iterator[Family]:
    texts = [a.value for a in node.args[:3] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if function in _CALLS and len(texts) < 2 and not isinstance(node.args[0], ast.JoinedStr):
        raise ValueError(f"a family without a name that can be read: line {node.lineno} calls {function}")
    if function in _CALLS and len(texts) >= 2:
        yield _family(texts[0], _CALLS[function], texts[1], tuple(texts[2:]))
    elif function == "Family" and len(texts) == 3:
        kind, name, text = texts
        yield _family(name, kind, text, _labels(node, constants))
    elif function == "of_sockets" and texts:
        rows = _constants(ast.parse(_SOCKETS.read_text()))["_OF_SOCKET"]
        assert isinstance(rows, tuple)
        for what, _, text in rows:
            yield _family(f"{texts[0]}_{what}", "counter", text, _SOCKET)
        yield _family(f"{texts[0]}_connections", "gauge", "Open connections.", _SOCKET)


def _comprehended(node: ast.DictComp, constants: dict[str, object]) -> Iterator[Family]:
    """`{name: Family("gauge", f"target_{name}", text, TARGET) for name, text in _OF_OST}`."""
    rows, made = node.generators[0].iter, node.value
    if not (isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and isinstance(rows, ast.Name)):
        return
    table = constants.get(rows.id)
    if made.func.id != "Family" or not isinstance(table, tuple):
        return
    kind, name = made.args[:2]
    if isinstance(name, ast.JoinedStr) and isinstance(name.values[0], ast.Constant):
        for what, text in table:
            yield _family(
                f"{name.values[0].value}{what}", ast.literal_eval(kind), text, _labels(made, constants)
            )


def _labels(node: ast.Call, constants: dict[str, object]) -> tuple[str, ...]:
    """The fourth of its arguments."""
    return _value(node.args[3], constants) if len(node.args) > 3 else ()


def _value(node: ast.expr, constants: dict[str, object]) -> tuple[str, ...]:
    if isinstance(node, ast.Name):
        value = constants[node.id]
        return value if isinstance(value, tuple) else ()
    if isinstance(node, ast.Tuple):
        return tuple(word for each in node.elts for word in _value(each, constants))
    if isinstance(node, ast.Starred):
        return _value(node.value, constants)
    return (str(ast.literal_eval(node)),)


def _family(name: str, kind: str, text: str, labels: tuple[str, ...]) -> Family:
    return Family(f"tarazu_{name}" + ("_total" if kind == "counter" else ""), kind, labels, text)


@cache
def all_families() -> dict[str, list[Family]]:
    """Title → its families."""
    return {title: _families(TARAZU / source) for title, source in _SOURCES.items()}


def table() -> str:
    """Markdown, a heading for each daemon and a line for each family; what sockets have is said once."""
    lines = []
    sockets: dict[str, list[str]] = {}
    for title, found in all_families().items():
        lines += [f"### {title}", ""]
        for family in found:
            if family.labels == _SOCKET:
                prefix, _, what = family.name.removeprefix("tarazu_").partition("_")
                sockets.setdefault(f"`{what}`: {family.text}", []).append(prefix)
            else:
                lines.append(line(family))
        lines.append("")
    daemons = {name for of in sockets.values() for name in of}
    named = ", ".join(f"`tarazu_{name}_…`" for name in sorted(daemons))
    lines += ["### Sockets", "", f"{named}, each by `socket`:", ""]
    lines += [f"- `…_{text[1:]}" for text, of in sockets.items() if {*of} == daemons]
    return "\n".join(lines).rstrip()


def line(family: Family) -> str:
    """`tarazu_target_unusable{reason}`: without the labels that all of targets and servers have."""
    labels = [label for label in family.labels if label not in _OF_TARGETS]
    name = f"{family.name}{{{', '.join(labels)}}}" if labels else family.name
    return f"- `{name}`: {family.text}" + (" A histogram." if family.kind == "histogram" else "")
