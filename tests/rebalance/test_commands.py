"""Moves as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.layout.setstripe import parse_layout
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.rebalance.commands import Order, command, options, throttle
from tarazu.rebalance.files import Shape


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("2.12.9", ""),
        ("lustre: 2.15.7_1_gabc\n", ""),
        ("2.16.1\n", "-W 100M"),
        ("2.17.57", "-W 100M"),
        ("?", "-W 100M"),
    ],
)
def test_a_lustre_without_the_option_is_not_given_it(tmp_path: Path, version: str, expected: str) -> None:
    place = tmp_path / "sys/fs/lustre"
    place.mkdir(parents=True)
    (place / "version").write_text(version)
    assert throttle(100 * 2**20, tmp_path) == expected
    shown = command(Order("/f o", 1, 1, "-c 1", "-c 2"), expected)
    assert shown == " ".join(["lfs migrate -n", *([expected] if expected else []), "-c 2 '/f o'"])


def test_components_without_objects_get_no_list() -> None:
    layout = Layout(
        (Component(0, 1 << 20, 1 << 20, 1), Component(1 << 20, EOF, 1 << 20, 2, pool="flash")), True
    )
    text = options(Shape(layout, (True, False)), [7])
    assert text == "-E 1M -c 1 -S 1M -o 7 -E -1 -c 2 -S 1M -p flash"
    both = options(Shape(layout, (True, True)), [7, 3, 4])
    assert parse_layout(both) == (layout, ((7,), (3, 4)))
