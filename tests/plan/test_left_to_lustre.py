"""Default layouts of directories as the planner reads them, from captured `lustre.lov` blobs."""

from pathlib import Path

import pytest

from tarazu import native
from tarazu.layout.manager import ConfigurationManager, LayoutPolicy, UsableOsts
from tarazu.layout.setstripe import format_layout, parse_layout
from tarazu.left import MIRRORED, NAMES_OSTS, OWN_DEFAULT, UNKNOWN_KIND
from tarazu.model import FileName, Forecast, Layout
from tarazu.plan.configure import configure
from tarazu.plan.left_to_lustre import default_layout
from tarazu.wire.local import DirectoryLayouts

CAPTURED = Path(__file__).parents[1] / "data" / "lustre" / "layout"


def blob(name: str) -> bytes:
    return (CAPTURED / f"{name}.lustre.lov.bin").read_bytes()


def test_a_directorys_progressive_default_is_a_template() -> None:
    layout = default_layout(blob("dir_default_pfl"))
    assert isinstance(layout, Layout)
    # The stripe size is left open in a default: 0, where `lfs getstripe` shows the file system's own.
    assert format_layout(layout) == "-E 16M -c 1 -S 0 -E 64M -c 3 -S 0 -E -1 -c 8 -S 0"
    forecast = Forecast(FileName("/x", "/x", "/x", False, 0, 0, 0), 1 << 30)
    ((placed, *_),) = ConfigurationManager(LayoutPolicy(), UsableOsts(35), layout).choose([forecast])
    assert placed is not None
    assert format_layout(placed) == "-E 16M -c 1 -S 4M -E 64M -c 3 -S 4M -E -1 -c 8 -S 4M"


def test_pools_and_dom_are_seen() -> None:
    pooled, dom = default_layout(blob("pool_flash")), default_layout(blob("dom_pfl"))
    assert isinstance(pooled, Layout) and pooled.components[0].pool == "flash"
    assert isinstance(dom, Layout) and dom.components[0].pattern == "mdt"


@pytest.mark.parametrize(
    ("data", "why"),
    [(blob("flr_mirror2"), MIRRORED), (b"\xd0\x0b\xd9\x0b" + bytes(60), UNKNOWN_KIND), (b"x", UNKNOWN_KIND)],
)
def test_mirrors_and_the_unknown_are_never_placed_over(data: bytes, why: str) -> None:
    assert default_layout(data) == why


def test_none() -> None:
    assert default_layout(b"") is None


def left(root: str, own: str, *, foreign_defaults: bool) -> str:
    """Why a file is left to Lustre in a directory with this default; the root's is the other."""
    blobs = [native.encode_lov(*parse_layout(text)) if text else b"" for text in (root, own)]
    answer = DirectoryLayouts(blobs[0], {"/d": blobs[1] or blobs[0]})
    forecast = Forecast(FileName("/d/x", "/d/x", "/d/x", False, 0, 0, 0), 1 << 30)
    ((file,), _) = configure(
        [forecast], UsableOsts(8), lambda _: answer, LayoutPolicy(), foreign_defaults=foreign_defaults
    )
    return file.left_because


@pytest.mark.parametrize("foreign_defaults", [False, True])
def test_a_start_index_counted_for_nothing_where_all_else_is_as_in_the_roots_default(
    foreign_defaults: bool,
) -> None:
    for own in ("-c 1 -S 4M -i 7", "-c 1 -S 4M -i 0", "-c 1 -S 4M -o 3"):
        assert left("-c 1 -S 4M", own, foreign_defaults=foreign_defaults) == NAMES_OSTS
    assert left("-c 1 -S 4M", "-c 1 -S 4M", foreign_defaults=foreign_defaults) == ""


def test_the_roots_own_start_index_was_overridden() -> None:
    for root in ("-c 1 -S 4M -i 2", "-c 2 -S 4M -o 2,5"):
        assert left(root, "", foreign_defaults=False) == NAMES_OSTS
        # Lustre starts these where the root's default says.
        assert left(root, "-c 4 -S 4M", foreign_defaults=True) == NAMES_OSTS
        assert left(root, "-c 4 -S 4M", foreign_defaults=False) in (NAMES_OSTS, OWN_DEFAULT)
        for own in ("-c 2 -S 4M -p flash", "-E 16M -c 1 -S 4M -E -1 -c 4 -S 4M"):
            assert left(root, own, foreign_defaults=True) != NAMES_OSTS
