"""Text as roff (man(7)): what has a meaning there is escaped, examples keep their lines, the rest is filled."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

_ESCAPED = str.maketrans({"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"})
_BREAK = r"\:"
"""Where a line may end."""
_CODE = re.compile(r"`([^`\n]+)`")


def escape(text: str) -> str:
    """One line or more; none of them begins with a request."""
    plain = "".join(
        _BREAK if c == "\N{ZERO WIDTH SPACE}" else c if c.isascii() else rf"\[u{ord(c):04X}]"
        for c in text.translate(_ESCAPED)
    )
    return re.sub(r"^([.\s])", r"\\&\1", plain, flags=re.MULTILINE)


def inline(text: str) -> str:
    """As `escape`, words in backquotes bold."""
    text = re.sub(r"\S{40,}", lambda m: m[0].replace(",", ",\N{ZERO WIDTH SPACE}"), text)
    parts = _CODE.split(text)
    marked = "".join(rf"\fB{escape(p)}\fR" if i % 2 else escape(p) for i, p in enumerate(parts))
    return re.sub(r"^([.\s])", r"\\&\1", marked, flags=re.MULTILINE)


def heading(name: str, section: int, version: str, summary: str, manual: str) -> Iterator[str]:
    """`name`: of the page, such as tarazu-run."""
    yield f'.TH "{escape(name.upper())}" "{section}" "" "tarazu {escape(version)}" "{escape(manual)}"'
    # Left flush and without hyphens: names of settings and options stay whole.
    yield from (".nr HY 0", ".nh", ".ad l", ".SH NAME", rf"{escape(name)} \- {inline(_one_line(summary))}")


def section(title: str) -> str:
    return f'.SH "{escape(title)}"'


def subsection(title: str) -> str:
    return f'.SS "{escape(title)}"'


def term(tag: str, text: str) -> Iterator[str]:
    """An item with what is said of it; `tag` is roff already."""
    yield from (".TP", tag, inline(_one_line(text)) or r"\&")


def bold(text: str) -> str:
    return rf"\fB{escape(text)}\fR"


def italic(text: str) -> str:
    return rf"\fI{escape(text)}\fR"


def text(words: str) -> Iterator[str]:
    """Paragraphs, between empty lines; lines that are indented, or set in columns, stay as they are."""
    for paragraph in re.split(r"\n\s*\n", words.strip("\n")):
        for example, lines in _parts(paragraph.split("\n")):
            yield ".PP"
            if example:
                yield from (
                    ".RS 4",
                    ".EX",
                    *map(escape, textwrap.dedent("\n".join(lines)).split("\n")),
                    ".EE",
                    ".RE",
                )
            else:
                yield inline(_one_line(" ".join(lines)))


def _parts(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """Runs of lines, and whether they are an example; what continues a column's text belongs to it."""
    part: list[str] = []
    kind = False
    for line in lines:
        example = _is_example(line)
        if part and example != kind:
            yield kind, part
            part = []
        part.append(line)
        kind = example
    if part:
        yield kind, part


def _is_example(line: str) -> bool:
    return line.startswith(" ") or re.match(r"(tarazu [a-z]|eval )", line) is not None or "   " in line


def document(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _one_line(words: str) -> str:
    return " ".join(words.split())
