"""Directory defaults of all kinds on a real Lustre: what is planned below them is taken, and kept."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from tarazu.layout.manager import ConfigurationManager, LayoutPolicy, UsableOsts
from tarazu.layout.objects import asked_osts, explicit_components
from tarazu.model import FileName, Forecast, Layout
from tarazu.plan.left_to_lustre import default_layout, names_osts
from tarazu.run.plan import default_layouts
from tarazu.stats.client import Mount
from tarazu.units import MIB

pytestmark = pytest.mark.lustre
LustreMount = Any
HIT = 1
SIZE = 10 * MIB


@pytest.mark.parametrize(
    "default",
    [
        "-c 1 -S 1M",
        "-c -1 -S 1M",
        "-C 12 -S 1M",
        "-E 4M -c 1 -S 1M -E -1 -C 12 -S 1M",
        "-E 16M -c 1 -S 1M -E -1 -c 4 -S 1M -z 64M",
        "-E 4M -c 1 -S 1M -E -1 -c 2 -S 1M -z 64M",
        "-E 512M -c 1 -S 1M -z 64M -E -1 -c 2 -S 1M -z 64M",
        "-E 1M -L mdt -E 4M -c 1 -S 1M -E -1 -c 2 -S 1M -z 64M",
        "-E 1M -L mdt -E -1 -c 2 -S 1M",
    ],
)
def test_a_file_is_placed_below_a_default_of_any_kind(lustre: LustreMount, default: str) -> None:
    """Below a self-extending one nothing was; overstriping was lost."""
    folder = lustre.directory / "d"
    folder.mkdir()
    folder.chmod(0o777)
    lustre.lfs("setstripe", *default.split(), folder)
    mount = Mount(str(lustre.mount), lustre.fs_name)
    key = f"/{lustre.directory.name}/d/f"
    _, found = default_layouts.default_layouts([mount], [key])
    layout = default_layout(found[key])
    assert isinstance(layout, Layout)
    forecast = Forecast(FileName(key, key, key, False, 0, 0, 0), SIZE)
    targets = UsableOsts(len(lustre.osts))
    (choice,) = ConfigurationManager(LayoutPolicy(min_size_bytes=0), targets, layout).choose([forecast])
    planned = choice.layout
    assert planned is not None, choice.left_because
    assert [c.pattern for c in planned] == [c.pattern for c in layout]
    turn = itertools.cycle(lustre.osts)
    osts = asked_osts(planned, SIZE, [[next(turn) for _ in range(c.stripe_count)] for c in planned])
    row = lustre.row("d/f", *osts, layout=planned)
    lustre.map(msgspec.structs.replace(row, explicit=explicit_components(planned, SIZE)))
    done = lustre.same("d/f")
    assert done.content is not None and done.content.endswith(b"third")
    assert lustre.created("d/f").outcome == HIT
    made = [of for of in lustre.layout_of("d/f") if of]
    first = next((of for of in osts if of), ())  # of several stripes that extend themselves nothing is asked
    assert made[0][: len(first)] == first


@pytest.mark.parametrize(
    ("default", "named"),
    [
        ("-i {0}", True),
        ("-c 1 -S 1M -o {0}", True),
        ("-c 2 -S 1M -o {0},{1}", True),
        ("-C 3 -S 1M -i {1}", True),
        ("-E 4M -c 1 -S 1M -E -1 -c 2 -S 1M -i {1}", True),
        ("-E 4M -c 1 -S 1M -E -1 -c 2 -S 1M -o {1},{0}", True),
        ("-E 1M -L mdt -E -1 -c 2 -S 1M", False),
        ("-E 4M -c 1 -S 1M -E -1 -c 2 -S 1M -z 64M", False),
        ("-c -1", False),
    ],
)
def test_a_default_that_names_osts_is_told_from_others(
    lustre: LustreMount, default: str, named: bool
) -> None:
    """`lustre.lov` itself hides a start index: the files were placed elsewhere."""
    folder = lustre.directory / "d"
    folder.mkdir()
    lustre.lfs("setstripe", *default.format(*lustre.osts).split(), folder)
    mount = Mount(str(lustre.mount), lustre.fs_name)
    key = f"/{lustre.directory.name}/d/f"
    _, found = default_layouts.default_layouts([mount], [key])
    assert names_osts(found[key]) == named
