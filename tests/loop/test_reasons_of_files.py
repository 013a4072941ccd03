"""Each file of one job is left to Lustre for a reason of its own: its directory's default, or how it is opened; all
five tell it.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tarazu import left, native
from tarazu.layout.setstripe import parse_layout
from tarazu.sim.testbed import processes
from tarazu.sim.testbed.daemons import wait_until_ready
from tarazu.stats import mds as mds_state
from tarazu.units import MIB
from tests.loop.reasons import Counted, everybody_says, last_line, site_of, until
from tests.odd_layouts import ODD

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

Site = tuple["Loop", Counted]
SIZE = 256 * MIB
FULL_PCT = 50
PROGRAM = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
O_LOV_DELAY_CREATE = 0o20400
for word in sys.argv[2:]:
    how, directory = word.split(":")
    path = f"{{sys.argv[1]}}/{{directory}}/file"
    for former in os.scandir(os.path.dirname(path)): os.unlink(former)
    flags = os.O_CREAT | os.O_WRONLY
    if how == "charset":
        fd = libc.fileno(ctypes.c_void_p(libc.fopen(path.encode(), b"w,ccs=UTF-8")))
    elif how == "temporary":
        name = ctypes.create_string_buffer(f"{{path}}.XXXXXX".encode())
        fd = libc.mkstemp(name)
    elif how == "later":
        os.close(os.open(path, flags | O_LOV_DELAY_CREATE, 0o644))
        fd = os.open(path, os.O_WRONLY)
    else:
        fd = os.open(path, flags | (os.O_APPEND if how == "append" else 0), 0o444 if how == "frozen" else 0o644)
    os.ftruncate(fd, {SIZE})
    os.close(fd)
"""
OF_DEFAULTS = {
    "named": ("-c 2 -S 4M -o 1,3", f"own layout: {left.NAMES_OSTS}"),
    "odd": (
        "-E 16M -c 1 -S 4M -E -1 -c 4 -S 64M -z 96M",
        "own layout: the default layout, component 2: expected an extension size that is a multiple of 64M and of its",
    ),
    "mdt": ("-E 1G -L mdt -E -1 -c 2 -S 4M", f"too small: {left.ON_MDT}"),
    "gone": ("-c 2 -S 4M -p gone", f"no room: {left.NO_USABLE_OST} in pool gone"),
    "spilling": (
        "-c 2 -S 4M -p flash",
        f"no room: {left.spills('flash')}: Lustre makes its files in pool disk",
    ),
}
"""A directory's default, and why a file below it is left."""
OF_ODD = {"preferred": left.MIRRORED, "parity flag": left.ERASURE_CODED, "compressed": left.COMPRESSED}
"""An odd default that the testbed keeps, and why."""
OF_OPENS = {
    "later": left.SKIPPED[1],
    "frozen": left.SKIPPED[2],
    "append": left.SKIPPED[4],
    "charset": left.SKIPPED[6],
    "temporary": left.SKIPPED[7],
}
"""How a file is opened, and why it is left."""
WITHOUT_LISTS = "-E 512M -c 1 -S 4M -z 64M -E -1 -c 4 -S 4M -z 64M"
"""Where an append is left to the MDS: Lustre extends such components by itself, and no plan lists OSTs for them."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    pools = {"flash": range(2), "disk": range(2, 4)}
    changes = {"layout": {"foreign_defaults": True}}
    for loop, counted in site_of(tmp_path_factory.mktemp("files") / "tb", changes, pools=pools):
        mds = loop.testbed.mds
        mds.set_spill("flash", "disk", FULL_PCT)
        for ost in pools["flash"]:
            mds.set("base", mds.get("total", ost) * (FULL_PCT + 10) // 100, ost)
        until(functools.partial(spills_over, loop))
        # mdsd looks at pools when it starts, and now and then.
        processes.kill(loop.testbed.directory, "tarazu-mdsd")
        loop.testbed.start_daemons()
        wait_until_ready(loop.testbed)
        yield loop, counted


def spills_over(loop: Loop) -> bool:
    """The MDS shows it some time after the OSTs have filled."""
    return any(spill.active for spill in mds_state.read(loop.testbed.mds_root).spills.values())


def run(loop: Loop, app: str, *files: str) -> None:
    loop.run(sys.executable, "-c", PROGRAM, loop.mount(), *files, app=app)


def test_every_file_has_the_reason_of_its_directory_or_of_its_open(site: Site) -> None:
    loop, counted = site
    bed = loop.testbed
    defaults = {name: native.encode_lov(*parse_layout(text)) for name, (text, _) in OF_DEFAULTS.items()}
    for name, default in (defaults | {name: ODD[name][0] for name in OF_ODD}).items():
        (loop.mount() / name).mkdir()
        bed.mds.set_default(bed.mount / name, default)
    for name in OF_OPENS:
        (loop.mount() / name).mkdir()
    bed.mds.set_default(bed.mount / "append", native.encode_lov(*parse_layout(WITHOUT_LISTS)))
    files = [f"usual:{name}" for name in (*OF_DEFAULTS, *OF_ODD)] + [f"{name}:{name}" for name in OF_OPENS]
    run(loop, "each", *files)
    before = {word: counted.of(word) for word in left.REASONS}
    run(loop, "each", *files)
    assert " hit=" not in last_line(loop, "each"), last_line(loop, "each")
    why = {name: text for name, (_, text) in OF_DEFAULTS.items()}
    why |= {name: f"own layout: {text}" for name, text in (OF_ODD | OF_OPENS).items()}
    for name, text in why.items():
        (path,) = (loop.mount() / name).iterdir()
        everybody_says(loop, "each", text, files=len(files), of=len(files), path=path)
    for word, count in Counter(text.partition(":")[0] for text in why.values()).items():
        counted.wait(word, before[word] + count)


def test_a_directory_with_a_default_of_its_own(site: Site) -> None:
    loop, counted = site
    counted.told(loop, {})
    (loop.mount() / "chosen").mkdir()
    loop.testbed.set_default_layout("2@4M", loop.testbed.mount / "chosen")
    run(loop, "chosen", "usual:chosen")
    before = counted.of("own layout")
    run(loop, "chosen", "usual:chosen")
    why = f"own layout: {left.OWN_DEFAULT}"
    everybody_says(loop, "chosen", why, files=1, of=1, path=loop.mount() / "chosen/file")
    counted.wait("own layout", before + 1)
