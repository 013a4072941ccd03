"""The page shows the one verdict that mdsd makes on each OST, and what parts have beside OSTs."""

from __future__ import annotations

from tarazu.parts.page.problems import problems
from tarazu.parts.page.seen import SystemState
from tarazu.wire.overview import Overview
from tests.daemons.mdsd.test_one_verdict import EXPECTED, FS, mdsd, seen  # noqa: F401
from tests.parts.page import sample

MDT = {
    "kind": "MDT", "fs_name": "scratch", "index": 1, "name": "scratch-MDT0001", "server": "mds1", "verdict": "sick",
    "why": "50 operations", "cells": {"ops/s": "12"},
    "mend": ("the MDS", "lctl get_param mdt.scratch-MDT0001.md_stats", "says what is slow"),
}  # fmt: skip


def test_the_page_shows_it(seen: Overview) -> None:  # noqa: F811
    with sample.served(SystemState(seen)) as (_, pages):
        body = pages.get("/all")
    assert body
    rows = body.plain.decode().split("<tr")[1:]
    for index, word in EXPECTED.items():
        (row,) = (each for each in rows if f"{FS}-OST{index:04x}" in each)
        assert f">{word}<" in row, (index, row)
    said = " ".join(one.what for one in problems(SystemState(seen)))
    assert all(f" {word}" in said for word in set(EXPECTED.values()) - {"ok"}), said


def test_it_shows_what_parts_have_and_names_what_mends_it() -> None:
    of = {**sample.well(), "parts": {"mdt": {"targets": [MDT]}}}
    of["osses"]["mds1"] = of["osses"]["oss1"]
    shown = sample.seen(of)
    (problem,) = problems(shown)
    assert problem.what == "scratch-MDT0001 is sick" and problem.oss == "mds1"
    assert problem.command == "lctl get_param mdt.scratch-MDT0001.md_stats"
    with sample.served(shown) as (_, pages):
        for path in ("/", "/servers/mds1"):
            body = pages.get(path)
            assert body and b"<caption>MDTs</caption>" in body.plain and b"scratch-MDT0001" in body.plain
