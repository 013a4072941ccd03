"""What a site writes: settings, layouts, keys, units, lists of nodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from tarazu import config, reading
from tarazu.batch import jobs as batch_jobs
from tarazu.daemons.asking import view_in
from tarazu.doctor.node import Node
from tarazu.doctor.units import values
from tarazu.layout import pfl
from tarazu.model import Ost, SystemView
from tarazu.store import stop
from tarazu.wire import admission, keys
from tests.hostile.cases.case import Case, text


def _with_key(directory: Path) -> Path:
    secret, public = keys.create(directory, "oss")
    (directory / "oss-n1.pub").write_bytes(public.read_bytes())
    public.unlink()
    return secret


def _admitted(name: str) -> Callable[[Path], Path]:
    def make(directory: Path) -> Path:
        _with_key(directory)
        (directory / "oss-n1.uids").write_text("1000-1999, 2500\n")
        (directory / "oss-n1.targets").write_text("scratch-OST0001 # ours\n")
        return directory / name

    return make


def _view(directory: Path) -> Path:
    path = directory / "view.json"
    view = SystemView("scratch", 1.0, (Ost(0, "oss1", 1 << 40, 1 << 39, 1 << 38),))
    path.write_bytes(msgspec.json.encode(view))
    return path


CASES = (
    Case(
        "configuration",
        ("tarazu.config.files:_content", "tarazu.config.files:read"),
        text("tarazu.toml", '[mdsd]\nrequests = "tcp://10.0.0.1:5770"\n[run]\nmode = "place"\nwait_s = 2\n'),
        config.load,
    ),
    Case(
        "PFL file",
        ("tarazu.layout.pfl:read",),
        text("pfl.ini", "[a]\nmatch = /ior/*\ncomponents = 0-128M:1, 128M-512M:3, 512M-EOF:8\n"),
        pfl.read,
    ),
    Case("secret key", ("tarazu.wire.keys:load",), _with_key, keys.load),
    Case(
        "public key", ("tarazu.wire.keys:load",), _admitted("oss-n1.pub"), lambda p: admission.check(p.parent)
    ),
    Case(
        "uids of a key",
        ("tarazu.wire.admission:_words",),
        _admitted("oss-n1.uids"),
        lambda p: admission.check(p.parent),
    ),
    Case(
        "targets of a key",
        ("tarazu.wire.admission:_words",),
        _admitted("oss-n1.targets"),
        lambda p: admission.check(p.parent),
    ),
    Case(
        "stop file",
        ("tarazu.store.stop:_first_line",),
        text("stop", "repair until noon\n"),
        lambda p: stop._first_line(str(p)),
    ),
    Case(
        "unit file",
        ("tarazu.doctor.units:values",),
        text("etc/systemd/system/a.service", "[Service]\nUser=slurm\nAmbientCapabilities=CAP_SYS_ADMIN\n"),
        lambda p: values(Node(config.Settings(), system=p.parents[3]), "a", "User"),
    ),
    Case(
        "file system in JSON",
        ("tarazu.daemons.asking:view_in",),
        _view,
        lambda p: view_in(str(p)),
    ),
    Case(
        "jobs of routers",
        ("tarazu.reading:content",),
        text("jobs", "4711 1000 n[1-3]\n4712 1001 n4 # ours\n"),
        lambda p: batch_jobs.nodes_of_jobs(reading.text(p, 32 << 20), str(p)),
    ),
)
