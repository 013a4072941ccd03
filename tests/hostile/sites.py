"""Where the product reads: functions that open a file for reading or make values of bytes, found in its source."""

from __future__ import annotations

import ast
from pathlib import Path

import tarazu

ATTRIBUTES = frozenset({"read_text", "read_bytes", "ParquetFile"})
"""Whoever's: of a Path, of json, of numpy …"""
CALLS = frozenset(
    {
        "open",
        "os.open",
        "os.fdopen",
        "io.open",
        "gzip.open",
        "mmap.mmap",
        "sqlite3.connect",
        "json.load",
        "json.loads",
        "tomllib.loads",
        "msgspec.json.decode",
        "msgspec.msgpack.decode",
        "trusted.open_file",
        "csv.reader",
        "csv.DictReader",
    }
)
DECODERS = frozenset({"msgspec.json.Decoder", "msgspec.msgpack.Decoder"})
"""What is made of these at the top of a module, or in a function there, is looked for by its name."""
WRITES = ("O_WRONLY", "O_CREAT", "O_DIRECTORY", "O_PATH")
"""Flags of a descriptor that nothing is read from."""


def sites() -> set[str]:
    """`tarazu.store.control:read_about` for each."""
    top = Path(tarazu.__file__).resolve().parents[1]
    found: set[str] = set()
    for path in sorted((top / "tarazu").rglob("*.py")):
        of = path.relative_to(top).with_suffix("")
        parts = of.parts[:-1] if of.name == "__init__" else of.parts
        if parts[1:2] != ("sim",) and not (parts[1:2] == ("parts",) and parts[3:4] == ("study",)):
            found |= {f"{'.'.join(parts)}:{name}" for name in _of_module(path)}
    return found


def _of_module(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    decoders = {
        _dotted(target)
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)
        if _dotted(node.value.func) in DECODERS
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }
    decoders |= {
        f"{node.name}()"
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        if any(isinstance(made, ast.Call) and _dotted(made.func) in DECODERS for made in ast.walk(node))
    }
    found: set[str] = set()

    def walk(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                walk(child, f"{name}.{child.name}" if name else child.name)
            else:
                if isinstance(child, ast.Call) and _reads(child, decoders):
                    found.add(name or "<module>")
                walk(child, name)

    walk(tree, "")
    return found


def _reads(call: ast.Call, decoders: set[str]) -> bool:
    name = _dotted(call.func)
    last = name.rpartition(".")[2]
    if last == "decode" and name.removesuffix(".decode") in decoders:
        return True
    named = name in CALLS or last in ATTRIBUTES or (last == "open" and "Path" in name)
    # `path.open("rb")`, whatever the path is called
    if not named and not (last == "open" and call.args and isinstance(call.args[0], ast.Constant)):
        return False
    text = ast.unparse(call)
    modes = [
        a.value
        for a in [*call.args[:2], *(k.value for k in call.keywords if k.arg == "mode")]
        if isinstance(a, ast.Constant) and isinstance(a.value, str) and len(a.value) <= 3
    ]
    writes = last in ("open", "fdopen") and any(set(mode) & set("wax") and "+" not in mode for mode in modes)
    return not writes and not any(flag in text for flag in WRITES)


def _dotted(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
