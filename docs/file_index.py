"""The site's page of all files: each room, each file in it, and the first sentence that it says of itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1]
TOPS = ("tarazu", "preload", "packaging")
HEAD = """# All files

What each file is about, in its own first sentence; made of the sources. [Architecture](architecture.md) tells how they
belong together.
"""


def page() -> str:
    parts = [HEAD]
    for top in TOPS:
        for folder in _folders(SOURCE / top):
            rows = list(_rows(folder))
            if rows:
                place = folder.relative_to(SOURCE)
                parts.append(
                    f"## `{place}/`\n\n{_about(folder)}| file | about |\n|---|---|\n" + "".join(rows)
                )
    return "\n".join(parts)


def _folders(top: Path) -> Iterator[Path]:
    yield top
    for path in sorted(top.rglob("*")):
        if path.is_dir() and not path.is_symlink() and "__pycache__" not in path.parts:
            yield path


def _about(folder: Path) -> str:
    init = folder / "__init__.py"
    line = _first_sentence(init) if init.exists() else ""
    return f"{line}\n\n" if line else ""


def _rows(folder: Path) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        if path.suffix in (".py", ".c", ".h") and path.name != "__init__.py" and not path.is_symlink():
            # A header says what its source says.
            if path.suffix == ".h" and path.with_suffix(".c").exists():
                continue
            yield f"| `{path.name}` | {_first_sentence(path).replace('|', chr(92) + '|')} |\n"


def _first_sentence(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        said = ast.get_docstring(ast.parse(text)) or ""
    else:
        said = text[2 : text.index("*/")] if text.startswith("/*") else ""
    paragraph = " ".join(line.strip(" *") for line in said.strip().partition("\n\n")[0].splitlines())
    sentence = paragraph.partition(". ")[0].removesuffix(".")
    return f"{sentence}." if sentence else ""
