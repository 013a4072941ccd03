"""Each noun of the glossary is a class or a setting."""

from __future__ import annotations

import dataclasses
import re
from importlib import import_module
from pathlib import Path

from tarazu.config.sections import SECTIONS

ROWS = re.findall(
    r"^\| ([^|]+) \| `([^`|]+)` \| .+ \|$",
    (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(),
    re.MULTILINE,
)
MOST = 60


def test_each_noun_is_there_once_and_they_are_few() -> None:
    nouns = [noun.lower() for noun, _ in ROWS]
    names = [name for _, name in ROWS]
    assert 0 < len(nouns) <= MOST
    assert len(set(nouns)) == len(nouns) and len(set(names)) == len(names)


def test_each_noun_names_a_class_or_a_setting() -> None:
    settings = {f"{name}.{item.name}" for name, of in SECTIONS.items() for item in dataclasses.fields(of)}
    for noun, name in ROWS:
        module, _, last = name.rpartition(".")
        there = name in settings or isinstance(getattr(import_module(module), last, None), type)
        assert there, f"{noun}: there is no {name}"
