"""Addresses of the pages of one OST and of one server."""

from __future__ import annotations

from urllib.parse import quote

from tarazu.parts.page.markup import Markup, element
from tarazu.wire.overview import Target


def ost(t: Target, top: str = "", said: object = None) -> Markup:
    """`top`: the way to the first page."""
    return element("a", t.name if said is None else said, href=f"{top}osts/{part(t.name)}")


def server(name: str, top: str = "", said: object = None) -> Markup:
    return element("a", name if said is None else said, href=f"{top}servers/{part(name)}")


def part(name: str) -> str:
    """A name as a part of an address."""
    return quote(name, safe="", errors="replace")
