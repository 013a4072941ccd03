"""Default layouts of all kinds, one directory each, in one job step: what each file gets, and why one gets nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tarazu import native
from tarazu.layout.setstripe import parse_layout
from tarazu.units import MIB
from tests.loop.conftest import make_loop

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

SIZE = 96 * MIB
DEFAULTS = {
    "sel": "-E 16M -c 1 -S 4M -E -1 -c 4 -S 4M -z 64M",
    "sel-first": "-E 512M -c 1 -S 4M -z 64M -E -1 -c 4 -S 4M -z 64M",
    "sel-open": "-E 16M -c 1 -S 0 -E -1 -c 4 -S 0 -z 64M",
    "sel-pool": "-E 16M -c 1 -S 1M -p flash -E -1 -c 2 -S 1M -p flash -z 64M",
    "sel-dom": "-E 1M -L mdt -E 64M -c 1 -S 1M -E -1 -c 4 -S 4M -z 64M",
    "sel-odd": "-E 16M -c 1 -S 4M -E -1 -c 4 -S 64M -z 96M",
    "over": "-C 12 -S 4M",
    "over-late": "-E 16M -c 1 -S 4M -E -1 -C 10 -S 4M",
    "all": "-c 65535 -S 4M",
    "dom": "-E 1M -L mdt -E -1 -c 2 -S 4M",
    "dom-only": "-E 1G -L mdt -E -1 -c 2 -S 4M",
    "pool": "-c 2 -S 4M -p flash",
    "pool-empty": "-c 2 -S 4M -p gone",
    "pfl": "-E 16M -c 1 -S 4M -E -1 -c 4 -S 4M",
}
WISHED = {
    "start": "-c 0 -S 0 -i 7",
    "start-of-site": "-c 1 -S 4M -i 0",
    "start-pfl": "-E 16M -c 1 -S 4M -E -1 -c 4 -S 4M -i 3",
    "start-over": "-C 12 -S 4M -i 2",
    "start-pool": "-c 2 -S 4M -p flash -i 1",
    "list": "-c 3 -S 4M -o 1,5,7",
    "list-of-one": "-c 1 -S 4M -o 6",
    "list-pfl": "-E 16M -c 2 -S 4M -o 4,1 -E -1 -c 4 -S 4M",
}
"""Defaults that name OSTs."""
DEFAULTS |= WISHED
NAMES_OSTS = "a default layout that names its OSTs (lfs setstripe -i or -o)"
LEFT = dict.fromkeys(WISHED, NAMES_OSTS) | {
    "sel-odd": "the default layout, component 2: expected an extension size that is a multiple of 64M and of its stripe"
    " size",
    "dom-only": "all of it lies on the MDT (DoM)",
    "pool-empty": "no usable OST in pool gone",
    "small": "smaller than layout.min_size 64M",
}


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """A program that ran twice, each time writing one file into each directory; the second run was placed."""
    changes = {"layout": {"foreign_defaults": True}}
    for loop in make_loop(
        tmp_path_factory.mktemp("defaults") / "tb", changes, osss=2, osts_per_oss=4, pools={"flash": range(4)}
    ):
        script = loop.testbed.directory / "job.py"
        names = [*DEFAULTS, "small"]
        script.write_text(
            f"import os, sys\nfor name in {names}:\n    path = sys.argv[1] + '/' + name + '/f'\n"
            f"    if os.path.exists(path): os.unlink(path)\n    with open(path, 'wb') as f:\n"
            f"        os.pwrite(f.fileno(), b'end', ({SIZE} if name != 'small' else 4096) - 3)\n"
        )
        for name in names:
            (loop.mount() / name).mkdir()
            if name in DEFAULTS:
                blob = native.encode_lov(*parse_layout(DEFAULTS[name]))
                loop.testbed.mds.set_default(loop.testbed.mount / name, blob)
        for _ in range(2):
            loop.run("python3", script, loop.mount(), app="defaults")
        yield loop


def row(loop: Loop, name: str) -> dict[str, Any]:
    (found,) = [r for r in loop.rows("defaults") if r["forecast"]["key"].startswith(f"/{name}/")]
    return found


@pytest.mark.parametrize("name", [n for n in DEFAULTS if n not in LEFT])
def test_a_default_is_kept_and_its_file_is_hit(placed: Loop, name: str) -> None:
    """Self-extending: the plan gave such a component a list, the map refused it, and nothing was placed."""
    found = row(placed, name)
    assert (found["outcome"], found["left_because"]) == ("hit", "")
    actual = placed.testbed.layout(f"{name}/f")
    default = parse_layout(DEFAULTS[name])[0].components
    planned = found["layout"]["components"]
    assert [c.get("pool", "") for c in planned] == [c.pool for c in default]
    assert [c.get("extension_bytes", 0) for c in planned] == [c.extension_bytes for c in default]
    for component, osts in zip(planned, found["placement"]["osts"], strict=True):
        limit = 1 if component.get("extension_bytes") else component["stripe_count"]
        assert len(osts) <= limit
        assert component.get("pool") != "flash" or set(osts) <= {0, 1, 2, 3}
    listed = [
        o for c, o in zip(planned, found["placement"]["osts"], strict=True) if len(o) == c["stripe_count"]
    ]
    made = [list(osts) for osts in actual.osts if osts]
    assert all(osts in made for osts in listed if osts)


def test_overstriping_is_kept(placed: Loop) -> None:
    """`-C 12` on 8 OSTs became one stripe."""
    (osts,) = placed.testbed.layout("over/f").osts
    assert len(osts) == 12 and sorted(osts.count(i) for i in range(8)) == [1] * 4 + [2] * 4
    assert placed.testbed.layout("over/f").layout.components[0].pattern == "overstriped"
    assert len(placed.testbed.layout("over-late/f").osts[1]) == 10


def test_a_users_list_or_start_index_was_overridden_with_foreign_defaults(placed: Loop) -> None:
    """`lfs setstripe -o 1,5,9` and `-i 7` of a directory."""
    for name, words in WISHED.items():
        assert row(placed, name)["left_because"] == NAMES_OSTS
        _, asked = parse_layout(words)
        actual = placed.testbed.layout(f"{name}/f").osts
        for osts, wanted in zip(actual, asked, strict=True):
            assert osts[: len(wanted)] == wanted


def test_why_a_file_is_left_to_lustre_is_said(placed: Loop) -> None:
    for name, why in LEFT.items():
        found = row(placed, name)
        assert found["left_because"].startswith(why), (name, found["left_because"])
        assert (found["layout"], found["placement"]) == (None, None)
        told = placed.tarazu("job", "explain", placed.mount() / name / "f").stdout
        assert f"left to Lustre: {why}" in told
    shown = placed.tarazu("history", "db", "show", "--app", "defaults").stdout
    assert all(f"left to Lustre: {why}" in shown for why in LEFT.values())
    line = (placed.home / "jobs.log").read_text().splitlines()[-1]
    assert "plan='planned'" in line and f"left={len(LEFT)} why=" in line
    (explained,) = placed.json("job", "explain", placed.mount() / "small" / "f")["file"]
    assert json.dumps(explained["left_because"]) == json.dumps(LEFT["small"])
