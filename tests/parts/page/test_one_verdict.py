"""The page shows the one verdict that mdsd makes on each OST, and what parts have beside OSTs."""

from __future__ import annotations

from tarazu.parts.page import document, heat
from tarazu.parts.page.problems import problems
from tarazu.parts.page.seen import SystemState, file_systems
from tarazu.wire.overview import Overview
from tests.daemons.mdsd.test_one_verdict import EXPECTED, FS, mdsd, seen  # noqa: F401
from tests.parts.page import sample

MDT = {
    "kind": "MDT", "fs_name": "scratch", "index": 1, "name": "scratch-MDT0001", "server": "mds1", "verdict": "sick",
    "why": "50 operations", "cells": {"ops/s": "12"},
    "mend": ("the MDS", "lctl get_param mdt.scratch-MDT0001.md_stats", "says what is slow"),
}  # fmt: skip


def test_the_page_shows_it(seen: Overview) -> None:  # noqa: F811
    (of,) = file_systems(seen)
    rows = str(heat.all_of(of)).split("<tr")
    for index, word in EXPECTED.items():
        (row,) = (each for each in rows if f"{FS}-OST{index:04x}" in each)
        assert f">{word}<" in row, (index, row)
    said = " ".join(str(one.what) for one in problems(SystemState(seen)))
    assert all(f" {word}" in said for word in set(EXPECTED.values()) - {"ok"}), said


def test_it_shows_what_parts_have_and_names_what_mends_it() -> None:
    of = {**sample.well(), "parts": {"mdt": {"targets": [MDT]}}}
    of["osses"]["mds1"] = of["osses"]["oss1"]
    shown = sample.seen(of)
    (problem,) = problems(shown)
    assert str(problem.what) == "scratch-MDT0001 is sick" and problem.oss == "mds1"
    assert problem.command == "lctl get_param mdt.scratch-MDT0001.md_stats"
    page = document.overview(shown, {}, (), "", now_s=0.0, every_s=60)
    assert "MDTs of scratch" in page and "scratch-MDT0001" in page
    one = document.one("servers", shown, "mds1", None, (), now_s=0.0, every_s=60)
    assert one is not None and "MDTs of mds1" in one
