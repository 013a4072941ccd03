"""Default layouts of directories as the planner reads them, from captured `lustre.lov` blobs."""

from pathlib import Path

import pytest

from tarazu.daemons.left_to_lustre import MIRRORED, UNKNOWN, default_layout
from tarazu.layout.manager import ConfigurationManager, LayoutPolicy, Targets
from tarazu.layout.setstripe import format_layout
from tarazu.model import FileName, Forecast, Layout

CAPTURED = Path(__file__).parents[1] / "data" / "lustre" / "layout"


def blob(name: str) -> bytes:
    return (CAPTURED / f"{name}.lustre.lov.bin").read_bytes()


def test_a_directorys_progressive_default_is_a_template() -> None:
    layout = default_layout(blob("dir_default_pfl"))
    assert isinstance(layout, Layout)
    # The stripe size is left open in a default: 0, where `lfs getstripe` shows the file system's own.
    assert format_layout(layout) == "-E 16M -c 1 -S 0 -E 64M -c 3 -S 0 -E -1 -c 8 -S 0"
    forecast = Forecast(FileName("/x", "/x", "/x", False, 0, 0, 0), 1 << 30)
    ((placed, _),) = ConfigurationManager(LayoutPolicy(), Targets(35), layout).choose([forecast])
    assert placed is not None
    assert format_layout(placed) == "-E 16M -c 1 -S 2M -E 64M -c 3 -S 2M -E -1 -c 8 -S 8M"


def test_pools_and_dom_are_seen() -> None:
    pooled, dom = default_layout(blob("pool_flash")), default_layout(blob("dom_pfl"))
    assert isinstance(pooled, Layout) and pooled.components[0].pool == "flash"
    assert isinstance(dom, Layout) and dom.components[0].pattern == "mdt"


@pytest.mark.parametrize(
    ("data", "why"),
    [(blob("flr_mirror2"), MIRRORED), (b"\xd0\x0b\xd9\x0b" + bytes(60), UNKNOWN), (b"x", UNKNOWN)],
)
def test_mirrors_and_the_unknown_are_never_placed_over(data: bytes, why: str) -> None:
    assert default_layout(data) == why


def test_none() -> None:
    assert default_layout(b"") is None
