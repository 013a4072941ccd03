"""What the pages name exists, and what exists is named: settings, environment variables."""

from __future__ import annotations

import re
import textwrap
import tomllib
from pathlib import Path

import pytest
import tables

from tarazu.config import PART, SECTIONS
from tarazu.config.check import items
from tarazu.config.reading import examine
from tarazu.part import installed
from tests.docs.reading import PAGES, blocks, spans

OF_PARTS = {
    f"part.{name}.{setting}"
    for name, part in installed().items()
    for setting in (items(part.settings) if part.settings else ())
}
SETTINGS = {f"{section}.{name}" for section, cls in SECTIONS.items() for name in items(cls)}
VARIABLES = {
    "TARAZU_CONFIG",
    "TARAZU_DISABLE",
    "TARAZU_HERE",
    "TARAZU_MOUNTS",
    "TARAZU_LUSTRE_MOUNT",
    "TARAZU_TUNE_DATA",
}
"""Of the environment, beside those of settings."""
FILES = {"c", "h", "toml", "service", "sysusers", "py", "json", "sql", "sock", "svg", "log", "db", "path"}
"""`mdsd.service`, `bursts.sql`: files, no settings."""


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_settings_that_are_named_exist(page: Path) -> None:
    named = {found for _, text in spans(page) for found in re.findall(r"^(\w+\.\w+)(?: = .*)?$", text)}
    settings = {
        name for name in named if name.partition(".")[0] in SECTIONS and name.partition(".")[2] not in FILES
    }
    assert settings - SETTINGS == set()
    of_parts = {
        found for _, text in spans(page) for found in re.findall(r"^(part\.\w+\.\w+)(?: = .*)?$", text)
    }
    assert {name for name in of_parts - OF_PARTS if name.split(".")[1] in installed()} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_variables_that_are_named_exist(page: Path) -> None:
    named = set(re.findall(r"\bTARAZU_[A-Z][A-Z_]*[A-Z]\b", page.read_text()))
    known = VARIABLES | {f"TARAZU_{name.replace('.', '_').upper()}" for name in SETTINGS | OF_PARTS}
    assert named - known == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_configurations_that_are_shown_are_accepted(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        if block.language != "toml" or not tomllib.loads(block.text).keys() <= {*SECTIONS, PART}:
            continue
        file = tmp_path / "tarazu.toml"
        file.write_text(textwrap.dedent(block.text))
        assert [str(wrong) for wrong in examine(file, {}).problems] == [], str(block)


def test_every_setting_stands_on_its_page() -> None:
    rows = re.findall(r"^- `([\w.]+)` = ", tables.TABLES["settings"](), re.MULTILINE)
    assert sorted(rows) == sorted(SETTINGS)
