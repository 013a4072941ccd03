"""The picture in the docs is what the screen shows today."""

from __future__ import annotations

from types import ModuleType
from xml.etree import ElementTree

from tarazu.cli.top.choice import TopChoice
from tarazu.cli.top.screen import screen, text_of


def test_the_picture_is_the_screen_of_today(pictured: ModuleType) -> None:
    committed = pictured.PICTURE.read_text()
    assert committed == pictured.drawn(), "`make docs` draws it anew"
    # What it shows is the screen's text, whatever draws it.
    texts = [
        node.text or "" for node in ElementTree.fromstring(committed).iter() if node.tag.endswith("}text")
    ]
    shown = screen(pictured.example(), TopChoice(), pictured.COLUMNS, pictured.LINES, every_s=2.0).lines
    assert "".join("".join(texts).split()) == "".join("".join(map(text_of, shown)).split())
