"""What the documentation says is true today: settings, commands, links."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import generate
import pytest

from tarazu.cli import COMMANDS
from tests.docs.reading import PAGES, ROOT, tokens


@pytest.mark.parametrize("name", sorted(set(generate.PAGES) - {"stripes"}))
def test_what_is_generated_is_the_present_one(name: str) -> None:
    page, made = generate.PAGES[name]
    text = page.read_text()
    assert made(text) == text, f"run `make docs`, or `python docs/generate.py {name}`"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        name, _, anchor = target.partition("#")
        if name.startswith(("http://", "https://")):
            continue
        file = page.parent / name if name else page
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), target


@cache
def anchors(page: Path) -> set[str]:
    """As GitHub makes them of the headings: `### A, B & C` is `a-b--c`."""
    headings = [body.content for token, body in pairwise(tokens(page)) if token.type == "heading_open"]
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def test_the_index_names_every_page_once() -> None:
    named = re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs" / "index.md").read_text())
    assert sorted(named) == sorted(page.name for page in PAGES[1:] if page.name != "index.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_that_are_named_exist(page: Path) -> None:
    named = set(re.findall(r"`tarazu ([a-z-]+)", page.read_text()))
    assert named <= set(COMMANDS), named - set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_no_page_is_empty(page: Path) -> None:
    assert len(page.read_text()) > 1000


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_files_that_are_named_exist(page: Path) -> None:
    named = re.findall(
        r"\b(?:tests|tarazu|daemons|sim|preload|docs)/[\w/]+\.(?:py|c|h|md)\b", page.read_text()
    )
    assert all((ROOT / path).exists() for path in named), named
