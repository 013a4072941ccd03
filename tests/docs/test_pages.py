"""What the documentation says is true today: settings, commands, links."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import generate
import pytest
import tables

from tarazu.cli import commands
from tests.docs.grammar import problem
from tests.docs.reading import PAGES, ROOT, SITE_ALONE, tokens, typed
from tests.of_parts import ALL_ARE_HERE


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_each_table_of_a_page_is_made_with_the_site(page: Path) -> None:
    text = page.read_text()
    filled = tables.filled(text)
    assert "<!-- table:" not in filled
    if ALL_ARE_HERE:
        assert filled.count("\n") >= text.count("\n") + 2 * text.count("<!-- table:")


def test_git_keeps_no_page_that_is_made_with_the_site() -> None:
    assert {f"{name}.md" for name in generate.WHOLE} == SITE_ALONE


def test_the_site_s_page_of_commands_has_each_command_and_daemon(tmp_path: Path) -> None:
    page = tmp_path / "commands.md"
    page.write_text(generate.WHOLE["commands"]())
    headings = [body.content for token, body in pairwise(tokens(page)) if token.type == "heading_open"]
    assert {f"tarazu {name}" for name in commands()} | {"tarazu-ossd", "tarazu-mdsd"} <= set(headings)
    assert page.read_text().count("--config FILE") == 1  # what all have alike is said once
    assert [f"{each}: {wrong}" for each in typed(page) if (wrong := problem(each))] == []


def test_each_folder_says_in_a_sentence_what_it_is_for_and_names_its_tests() -> None:
    rows = re.findall(r"^- `(\S+)`(?: \(`(\S+)`\))?: (.*)$", generate.WHOLE["files"](), flags=re.MULTILINE)
    assert len(rows) > 50 and {"tarazu/allocate", "preload/place"} <= {name for name, _, _ in rows}
    assert [name for name, _, about in rows if not about.strip()] == []
    assert [name for of in rows for name in of[:2] if name and not (ROOT / name).is_dir()] == []


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
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - SITE_ALONE - {"index.md"}
    assert sorted(named) == sorted(pages)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_that_are_named_exist(page: Path) -> None:
    named = set(re.findall(r"`tarazu ([a-z-]+)", page.read_text()))
    assert not ALL_ARE_HERE or named <= set(commands()), named - set(commands())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_files_that_are_named_exist(page: Path) -> None:
    named = re.findall(
        r"\b(?:tests|tarazu|daemons|sim|preload|docs)/[\w/]+\.(?:py|c|h|md)\b", page.read_text()
    )
    here = [path for path in named if ALL_ARE_HERE or "/parts/" not in path]
    assert all((ROOT / path).exists() for path in here), named
