"""What the pages of the documentation say one can type: blocks of code, and the commands in them and in the prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
_IGNORED = (ROOT / ".gitignore").read_text().split()
SITE_ALONE = {Path(line).name for line in _IGNORED if line.startswith("/docs/")}
"""Pages that are made with the site: `--help` and what folders are for, which have tests of their own."""


def _is_there(page: Path) -> bool:
    """A part's page says what is so where the part is."""
    named = re.search(r"where\n?\s*`(tarazu/parts/\w+)` is", page.read_text())
    return page.name not in SITE_ALONE and (named is None or (ROOT / named[1]).is_dir())


PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(filter(_is_there, (ROOT / "docs").glob("*.md"))),
]
LANGUAGES = {"bash", "console", "text", "toml", "ini", "yaml", "python", "sql", "csv", "lua", "tcl", "json"}
"""Of a block of code: `bash` is what a shell runs, `console` has prompts and what was printed."""
_INTRODUCE = {"do", "then", "else", "if", "while", "until", "!", "time", "exec", "sudo", "{", "("}
_HERE_DOCUMENT = re.compile(r"<<-?[ ]*'?(\w+)'?(.*)\n(?:.*\n)*?[ \t]*\1(?=\n|$)")
_TOKEN = re.compile(
    r"""[ \t]+|\\\n|\#[^\n]*
    |(?P<redirection>&?[<>]+(?:&1)?)
    |(?P<operator>[;&|()\n]+)
    |(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s;&|()<>'"\\])+)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Typed:
    """A simple command: its words as the shell would pass them on, but for variables and patterns."""

    page: str
    line: int
    words: tuple[str, ...]
    in_prose: bool

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {' '.join(self.words)}"


@cache
def tokens(page: Path) -> list[Token]:
    """The page as CommonMark reads it, with tables."""
    return MarkdownIt("commonmark").enable("table").parse(page.read_text())


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    """The blocks of code of a page; one without a language has an empty one, as has an indented one."""
    return tuple(
        Block(page.name, (token.map or [0])[0] + 1, token.info.strip(), token.content)
        for token in tokens(page)
        if token.type in ("fence", "code_block")
    )


@cache
def spans(page: Path) -> tuple[tuple[int, str], ...]:
    """(line, text) of each piece of code within the prose."""
    found = []
    for token in tokens(page):
        line = (token.map or [0])[0] + 1
        found += [(line, child.content) for child in token.children or () if child.type == "code_inline"]
    return tuple(found)


def script(block: Block) -> str:
    """What of a block is typed: all of a `bash` one, what follows the prompts of a `console` one."""
    if block.language != "console":
        return block.text
    return "\n".join(line[2:] for line in block.text.splitlines() if line[:2] in ("$ ", "# ", "> "))


def simple_commands(text: str) -> Iterator[tuple[str, ...]]:
    """The words of each simple command of a shell's text, those in `$(…)` among them; of a here-document none.

    Raises ValueError for what is no shell's text, such as a quote without its end.
    """
    text = _HERE_DOCUMENT.sub(r"\2", text)
    words: list[str] = []
    redirected = False
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            raise ValueError(f"no shell's text: {text[at:]!r}")
        at = found.end()
        if redirection := found["redirection"]:
            redirected = not redirection.endswith("&1")
            if words and words[-1].isdigit():
                words.pop()
        elif found["operator"]:
            if words:
                yield tuple(words)
            words = []
        elif word := found["word"]:
            for inner in re.findall(r'"[^"]*?\$\(([^()]*)\)', word):
                yield from simple_commands(inner)
            if redirected:
                redirected = False
            elif words or (word not in _INTRODUCE and not re.match(r"\w+=", word)):
                words.append(_plain(word))
    if words:
        yield tuple(words)


def _plain(word: str) -> str:
    """Without its quotes."""
    return re.sub(
        r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)""", lambda m: m[1] or m[2] or m[3] or "", word, flags=re.S
    )


@cache
def typed(page: Path) -> tuple[Typed, ...]:
    """All commands of a page: of its blocks, and what of its prose begins like one."""
    found = []
    for block in blocks(page):
        if block.language in ("bash", "console"):
            found += [Typed(page.name, block.line, words, False) for words in simple_commands(script(block))]
    for line, text in spans(page):
        if re.match(r"[a-z][\w.-]*( |$)", text) and "\\" not in text:
            try:
                found += [Typed(page.name, line, words, True) for words in simple_commands(text)]
            except ValueError:  # a piece of code of another kind, with one quote
                continue
    return tuple(found)
