"""What the documentation says is true today: settings, commands, links."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tarazu.cli import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_tables_of_settings_and_of_the_simulator_are_the_present_ones() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec and spec.loader
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    text = generate.SETTINGS_PAGE.read_text()
    assert generate.settings(text) == text, "run `make docs`"
    text = generate.SOURCES.read_text()
    assert generate.parameters(text) == text, "run `make docs`"
    text = generate.SIMULATOR.read_text()
    assert generate.simulator(text) == text, "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


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
