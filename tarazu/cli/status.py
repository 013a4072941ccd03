"""What is stopped, what parts do here, and how clientd and mdsd are: servers, targets, promises, answers.

The speed of an OST is bytes per second of I/O time, not bandwidth; `of peers` compares it with OSTs of its pools and
kind that were measured alike. `-`: nothing reliable was seen.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from tarazu import config
from tarazu.cli import disable
from tarazu.cli.output import print_json, print_table, say
from tarazu.daemons.asking import status_of
from tarazu.part import installed
from tarazu.store.stop import site_stop
from tarazu.units import counted, human_bytes, human_rate, human_speed, human_time
from tarazu.wire.overview import PartTarget, Target, overview


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    site = site_stop(settings.run.stop_file)
    jobs = disable.steps(disable.running(settings.run))
    of_parts = {name: of for name, part in installed().items() if (of := part.here(settings))}
    if not options.json:
        _print_stops(str(site) if site else "", jobs)
        for name, of in of_parts.items():
            for line in installed()[name].lines_here(of):
                say(line)
    status = status_of(settings)
    if options.json:
        print_json({"site_stop": site._asdict() if site else None, "jobs": jobs, "parts": of_parts, **status})
    else:
        _print(status)
    return 0


def _print_stops(site: str, jobs: list[disable.RunningStep]) -> None:
    if site:
        print(f"the whole site is {site} (undo: tarazu enable --site)")
    for job in jobs:
        if job.stopped is not None:
            why = f": {job.stopped}" if job.stopped else ""
            print(f"{job.run} is stopped by its owner{why} (undo: tarazu enable --job {job.run})")


def _print(status: Mapping[str, Any]) -> None:
    mine, mdsd = status["clientd"], status["mdsd"]
    _print_clientd(mine)
    if "unavailable" in mdsd:
        say(f"mdsd: unavailable: {mdsd['unavailable']}")
        return
    gate, requests, statistics = mdsd["gate"], mdsd["requests"], mdsd["statistics"]
    say(
        f"mdsd: up {mdsd['uptime_s']:.0f} s, {_ready(mdsd)}, policy {mdsd['policy']}, "
        f"{'with' if mdsd['keys'] else 'WITHOUT'} keys, "
        f"gate {'open' if gate['open'] else 'closed: ' + gate['why_closed']} "
        f"(CPU {gate['cpu_load']:.0%} of {gate['cpu_limit']:.0%}, "
        f"memory {gate['memory_load']:.0%} of {gate['memory_limit']:.0%})"
    )
    answers = ", ".join(f"{count} {name}" for name, count in requests["answers"].items()) or "none"
    say(
        f"  requests   {requests['address']}: {requests['received']} received, {requests['waiting']} waiting, "
        f"{requests['promises']} promised, {counted(requests['dead_steps'], 'step')} died, answered: {answers}; "
        f"{requests['refused']} handshakes refused{_refusals(mdsd)}"
    )
    say(
        f"  statistics {statistics['address']}: {statistics['received']} received, "
        f"{statistics['dropped']} dropped, {statistics['refused']} handshakes refused"
    )
    for name, of in (mdsd.get("parts") or {}).items():
        for line in (
            [f"part {name}: failed, and is off: {of['failed']}"] if "failed" in of else _of_part(name, of)
        ):
            say(f"  {line}")
    _print_mds(mdsd.get("mds") or {})
    _print_servers(mdsd["osses"])
    seen = overview(mdsd)
    targets = seen.targets
    for common in seen.common_causes:
        say(f"  {common}")
    for fs_name, known in mdsd["file_systems"].items():
        _print_targets(fs_name, known["osts"], [t for t in targets if t.fs_name == fs_name])
        _print_others(fs_name, [of for of in seen.others if of.fs_name == fs_name])
        for device, qos in (known.get("qos") or {}).items():
            say(f"  {device} chooses by itself: " + ", ".join(f"{k} {v}" for k, v in sorted(qos.items())))


def _print_clientd(mine: Mapping[str, Any]) -> None:
    if "unavailable" in mine:
        say(f"clientd: unavailable, so mdsd was asked directly: {mine['unavailable']}")
        return
    say(
        f"clientd {mine['name']}: up {mine['up_s']:.0f} s, {_ready(mine)}, {counted(mine['plans'], 'plan')}, "
        f"{counted(mine['reports'], 'report')}, "
        f"{counted(mine['failed'], 'failed conversation')}; database {mine['database']}"
    )


def _of_part(name: str, status: Mapping[str, Any]) -> list[str]:
    part = installed().get(name)
    return part.status_lines(status) if part and status else []


def _ready(daemon: Mapping[str, Any]) -> str:
    return "ready" if daemon.get("ready") else "starting: plans wait until it is ready"


def _print_mds(load: Mapping[str, Any]) -> None:
    """What the node that mdsd runs on does besides."""
    if not load:
        return
    made = sum(rate for of in load["operations_per_s"].values() for rate in of.values())
    words = [
        f"CPU {load['cpu_load']:.0%}, memory {load['memory_load']:.0%}, LNet {load['lnet_bytes_per_s'] / 1e6:.1f} MB/s"
    ]
    if load["operations_per_s"]:
        words.append(f"{made:.0f} metadata operations/s")
    words += [f"{mdt}: {counted(free, 'inode')} free" for mdt, free in load["files_free"].items()]
    if load["jobs"]:
        words.append("busiest " + ", ".join(f"{job} {rate:.0f}/s" for job, rate in load["jobs"][:3]))
    say(f"  node       {'; '.join(words)}")


def _refusals(mdsd: Mapping[str, Any]) -> str:
    """What was refused of peers that are let in; nothing where nothing was."""
    of_ends = {
        "messages after their key was removed": "shut_out",
        "messages beyond a connection's rate": "too_many",
        "connections turned away": "turned_away",
    }
    counts = {
        text: sum(mdsd[end].get(name, 0) for end in ("requests", "statistics"))
        for text, name in of_ends.items()
    } | {"refused by their keys' lists": mdsd.get("refused_by_rights", 0)}
    return "".join(f", {number} {text}" for text, number in counts.items() if number)


def _print_servers(osses: Mapping[str, Any]) -> None:
    print()
    print_table(
        ("OSS", "age s", "CPU", "memory", "LNet MB/s", "queue ms", "notes"),
        [
            (
                name,
                f"{o['age_s']:.1f}",
                f"{o['cpu_load']:.0%}",
                f"{o['memory_load']:.0%}",
                f"{o['lnet_bytes_per_s'] / 1e6:.1f}",
                f"{o['queue_wait_s'] * 1e3:.1f}",
                _notes(o),
            )
            for name, o in osses.items()
        ],
    )


def _print_targets(fs_name: str, osts: list[dict[str, Any]], targets: Sequence[Target]) -> None:
    print()
    print_table(
        (f"{fs_name} OST", "OSS", "size", "used", "promised", "MB/s", "of peers", "by", "state"),
        [
            (
                o["index"],
                o["oss"],
                human_bytes(o["total_bytes"]),
                f"{1 - o['free_bytes'] / o['total_bytes']:.1%}" if o["total_bytes"] else "-",
                human_bytes(o["promised_bytes"]),
                "-" if o["write_bytes_per_s"] is None else f"{o['write_bytes_per_s'] / 1e6:.0f}",
                human_speed(o.get("relative_speed")),
                _source(o),
                _state(target, o.get("also_reported_by") or ()),
            )
            for o, target in zip(osts, targets, strict=True)
        ],
        left=2,
    )


def _print_others(fs_name: str, others: Sequence[PartTarget]) -> None:
    for kind in dict.fromkeys(of.kind for of in others):
        rows = [of for of in others if of.kind == kind]
        print()
        print_table(
            (f"{fs_name} {kind}", "server", *rows[0].cells, "state"),
            [(of.index, of.server, *of.cells.values(), _state_of(of)) for of in rows],
            left=2,
        )


def _state_of(of: PartTarget) -> str:
    words = f"{of.verdict.upper()} ({of.why})" if of.verdict.amiss else str(of.verdict)
    return f"{words}; {of.note}" if of.note else words


def _source(ost: Mapping[str, Any]) -> str:
    """Of its speed; in brackets, the one that its server has, of which nothing reliable was seen yet."""
    if ost.get("speed_source"):
        return str(ost["speed_source"])
    timed = ost.get("timed_by") or {}
    known = timed.get("writes") or timed.get("reads")
    return f"({known})" if known else "-"


def _state(target: Target, also: Sequence[str]) -> str:
    words = str(target.verdict)
    if target.verdict.amiss:
        words = f"{words.upper()} ({target.why})" if target.why else words.upper()
    if target.since_s:
        words += f" since {human_time(target.since_s)}"
    return f"{words} also reported by {','.join(also)}" if also else words


def _notes(oss: Mapping[str, Any]) -> str:
    return " ".join(
        ["STALE"] * oss["stale"]
        + [f"unreadable: {parameter}" for parameter in oss["unreadable"]]
        + [f"impossible values: {target}" for target in oss.get("impossible", ())]
        + [counted(late, "late report") for late in [oss.get("late")] if late]
        + [f"routes {human_rate(r['bytes_per_s'])}" for r in [oss.get("router")] if r]
    )
