"""The documentation as a site: `make docs` has Sphinx make it in build/site, from the pages as GitHub shows them.

Strict: a link or an anchor that leads nowhere, a page that docs/index.md does not name, is an error. Nothing of the
site is fetched from elsewhere. The pages' order is that of docs/index.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer
from sphinx.errors import ExtensionError

sys.path.insert(0, str(Path(__file__).parent))
import tables

project = "tarazu"
release = metadata.version("tarazu")
extensions = ["myst_parser"]
exclude_patterns = ["*.py"]
html_theme = "furo"
html_title = f"tarazu {release}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}
myst_heading_anchors = 4
highlight_language = "none"
nitpicky = True
smartquotes = False  # prose quotes what is typed
master_doc = "index"


MADE = {"Reference": ["commands", "files"]}
"""Heading of docs/index.md → pages of the site alone (docs/generate.py), after those that it names."""


def sections(index: str) -> Iterator[tuple[str, list[str]]]:
    """The headings of docs/index.md, each with its pages."""
    for part in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        lines = [line for line in body.splitlines() if line.startswith("- ")]
        yield heading.strip(), [page for line in lines for page in re.findall(r"\]\(([\w-]+)\.md\)", line)]


def _completed(_app: Any, name: str, source: list[str]) -> None:
    """Tables that the code knows; and of a table of contents, which readers of the plain text do not need."""
    source[0] = tables.filled(source[0])
    if name == master_doc:
        for heading, pages in sections(source[0]):
            named = "\n".join([*pages, *MADE.get(heading, [])])
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n{named}\n```\n"


def _nothing_from_elsewhere(app: Any, failed: Exception | None) -> None:
    """A reader's browser asks nobody else for anything."""
    for page in Path(app.outdir).rglob("*.html") if failed is None else ():
        asked = re.findall(
            r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=\"(https?://[^\"]+)", page.read_text()
        )
        if asked:
            raise ExtensionError(f"{page.name}: expected nothing from elsewhere, found {asked[0]}")


def setup(app: Any) -> None:
    app.connect("build-finished", _nothing_from_elsewhere)
    app.add_lexer("csv", TextLexer)  # which Pygments does not know
    app.connect("source-read", _completed)
