"""Say which statistics this node gives: each source that ossd and mdsd read, where it is, and what was parsed.

  tarazu doctor collect                what ossd would report, and mdsd see, one line a target (reads for a second)
  tarazu doctor collect --dump         source by source
  tarazu doctor collect --dump --root DIR    the same for a copy of another node's /proc and /sys

Only root reads debugfs: others see what is missing, and why. Nothing is sent to anyone.

exit status: 0 all sources of this node's role could be read; 1 some could not; 3 this is no node of Lustre.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from itertools import groupby

import msgspec

from tarazu import config
from tarazu.cli.output import print_json
from tarazu.stats.collector import Collector
from tarazu.stats.mds_load import MdsCollector, MdsLoad
from tarazu.stats.osp import Osps
from tarazu.stats.params import PARAMETERS, target_name
from tarazu.stats.sources import Source, Survey, survey

PARTLY, NO_LUSTRE = 1, 3
INTERVAL_S = 1.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dump", action="store_true", help="source by source")
    parser.add_argument("--root", metavar="DIR", help="read /proc and /sys below this directory")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    root = options.root or config.root()
    sources = survey(root)
    if options.dump:
        if options.json:
            print_json({**_plain(sources), "missing": sources.missing})
        else:
            _print(sources)
    else:
        _report(root, sources, options.json)
    if not sources.roles:
        return NO_LUSTRE
    return PARTLY if sources.missing else 0


def _plain(found: Survey) -> dict[str, object]:
    return {f: getattr(found, f) for f in found.__struct_fields__}


def _print(found: Survey) -> None:
    print(_who(found))
    for parameter, sources in groupby(found.sources, lambda s: s.parameter):
        use = f"   {PARAMETERS[parameter].use}" if parameter in PARAMETERS else ""
        print(f"{parameter}{use}")
        for source in sources:
            print(f"  {_line(source)}")
    if found.roles:
        missing = sorted({s.parameter for s in found.missing})
        print(f"not read of what this node should have: {', '.join(missing) or 'nothing'}")


def _who(found: Survey) -> str:
    if not found.roles:
        return f"no Lustre server or client: no target, MDT or mount below {found.root}"
    names = {"oss": "OSS", "mds": "MDS", "client": "client"}
    roles = ", ".join(names[role] for role in found.roles)
    return f"{roles} below {found.root}, Lustre {found.version or 'of unknown version'}"


def _line(source: Source) -> str:
    device = f"{source.device}: " if source.device else ""
    if not source.read:
        return f"{device}NOT READ{' ' + source.path if source.path else ''}: {source.why}"
    form = f" [{source.form}]" if source.form else ""
    return f"{device}{source.path}{form}: {source.parsed}"


def _report(root: str, found: Survey, as_json: bool) -> None:
    """What ossd would publish, and mdsd see, each where its role is here."""
    from tarazu.daemons.ossd.service import as_text

    of_oss = Collector(root, "this node") if "oss" in found.roles else None
    of_mds = MdsCollector(root) if "mds" in found.roles else None
    report = load = None
    for wait_s in (INTERVAL_S, 0.0):
        if of_oss:
            report = of_oss.collect(time.time(), time.monotonic())
        if of_mds:
            load = of_mds.collect(time.monotonic())
        if of_oss or of_mds:
            time.sleep(wait_s)
    amiss = _amiss(root) if of_mds else {}
    if as_json:
        of_mdt = {"mds": load, "problems": amiss} if load else {}
        print_json({**(msgspec.to_builtins(report) if report else {}), **of_mdt})
        return
    print(_who(found))
    if report:
        print(as_text(report))
    if load:
        print("\n".join(_of_mds(load, amiss)))


def _amiss(root: str) -> dict[str, str]:
    """OST → what the MDS's parameters say against it."""
    from tarazu.daemons.mdsd.health import of_connections, text_of

    verdicts = of_connections(Osps(root).look())
    return {target_name(*target): text_of(verdict) for target, verdict in sorted(verdicts.items())}


def _of_mds(load: MdsLoad, amiss: Mapping[str, str]) -> Iterator[str]:
    yield (
        f"this MDS: CPU {load.cpu_load:.0%}, memory {load.memory_load:.0%}, "
        f"LNet {load.lnet_bytes_per_s / 1e6:.1f} MB/s"
    )
    for mdt in sorted({*load.files_free, *load.operations_per_s}):
        free = load.files_free.get(mdt)
        rate = sum(load.operations_per_s.get(mdt, {}).values())
        yield f"{mdt}: {'unknown' if free is None else free} inodes left, {rate:.1f} operations/s"
    for ost, why in amiss.items():
        yield f"{ost}: {why}"
    for parameter in load.unreadable:
        yield f"left out: {parameter}"
