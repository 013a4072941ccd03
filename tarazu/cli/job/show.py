"""Steps of a job, its plans and what came of them, what is promised still, which routers carry its data, what is off.

tarazu job show                 your newest job: one that runs, else the last that ended
tarazu job show ior             the newest of this application
tarazu job show 4711            this one
tarazu job show 4711 --json     all of it

JOB is the batch system's id (4711; 4711.pbs1; of an array 4710 or 4710_3), a run's name or the first part of that, or
an application's name as `tarazu history list` has it.
What a job's owner sees: his runs (history and jobs.log) and his plans, through clientd. root sees everyone's plans,
promises and routers, and no histories but its own. Steps that run are found where `run.map_dir` is seen.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tarazu import config, ranges
from tarazu.cli.job import own, reasons
from tarazu.cli.output import print_json, say, table_lines
from tarazu.config import Settings
from tarazu.daemons.asking import TIMEOUT_S
from tarazu.errors import TarazuError, Unavailable
from tarazu.names import did_you_mean
from tarazu.part import installed
from tarazu.store.stop import site_stop
from tarazu.trace.history import id_of
from tarazu.units import counted, figure, human_bytes, human_time
from tarazu.wire import local
from tarazu.wire.channel import connect

MOST_SAID = 3
"""Runs of a job, the newest, of which parts say something."""


def configure(parser: argparse.ArgumentParser) -> None:
    own.configure(parser, "job", "the batch system's job id")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    name = options.job or own.newest(settings)
    if name is None:
        raise TarazuError("expected a job of yours that tarazu led, found none (`tarazu run` starts one)")
    job = told(settings, name)
    if not _known(job) and (newest := own.newest(settings, name)):
        name, job = newest, told(settings, newest)
    if options.json:
        print_json(job)
        return 0
    if not _known(job):
        problem = "".join(f"; {text}" for text in (job["problem"], reasons.untouched(settings)) if text)
        meant = did_you_mean(name, own.applications(settings))
        raise TarazuError(f"{name}: expected a job of yours that tarazu led, found none{meant or problem}")
    if name != options.job:
        say(f"job {name}, the newest{f' of {options.job}' if options.job else ' of yours'}")
    for line in text(job):
        say(line)
    return 0


def _of_parts(statuses: Mapping[str, Any], job: str) -> dict[str, list[str]]:
    """Part → what it says of the job."""
    parts = {name: part for name, part in installed().items() if statuses.get(name)}
    said = {n: part.job_lines(statuses[n], job) for n, part in parts.items() if "failed" not in statuses[n]}
    return {name: lines for name, lines in said.items() if lines}


def _known(job: Mapping[str, Any]) -> bool:
    return any(job[part] for part in ("running", "ended", "log", "plans"))


def told(settings: Settings, job: str) -> dict[str, Any]:
    """All that is known of a job; `problem`: why something may be missing."""
    problem = ""
    of_clientd: Mapping[str, Any] = {}
    try:
        of_clientd = _asked(settings, job)
    except Unavailable as error:
        problem = f"plans and promises are not known here: {error}"
    mdsd = of_clientd.get("mdsd") or {}
    its = of_clientd.get("job") or {}
    if "unavailable" in mdsd:
        problem = f"promises are not known: {mdsd['unavailable']}"
    stop = site_stop(settings.run.stop_file)
    log = own.lines(settings, job)
    ended = own.ended(settings, job, [line.run for line in log])
    return {
        "job": job,
        "running": own.running(settings, job),
        "ended": ended,
        "said": _said(settings, ended[-MOST_SAID:]),
        "log": log,
        "plans": its.get("plans") or [],
        "promises": its.get("promises"),
        "parts": _of_parts(mdsd.get("parts") or {}, job),
        "site_stopped": str(stop) if stop else "",
        "problem": problem,
    }


def _said(settings: Settings, runs: Sequence[own.Ended]) -> dict[str, list[str]]:
    """Run → what parts say of it."""
    parts = installed().values()
    said = {run.id: [line for part in parts if (line := part.run_line(settings, run))] for run in runs}
    return {run: lines for run, lines in said.items() if lines}


def _asked(settings: Settings, job: str) -> Mapping[str, Any]:
    with connect(settings.clientd.socket, TIMEOUT_S) as channel:
        answer = channel.ask(local.StatusQuery(job))
    if not isinstance(answer, local.StatusAnswer):
        raise Unavailable(f"clientd: expected its status, found {type(answer).__name__}")
    return answer.status


def text(found: Mapping[str, Any]) -> Iterator[str]:
    """For people."""
    if found["site_stopped"]:
        yield f"the whole site is {found['site_stopped']}"
    yield from _running(found["running"])
    yield from _ended(found["ended"], {line.run: line for line in found["log"]}, found.get("said", {}))
    yield from _plans(found["plans"])
    yield from _promises(found["promises"])
    for lines in found["parts"].values():
        yield from lines
    if found["problem"]:
        yield found["problem"]


def _running(steps: Sequence[own.Running]) -> Iterator[str]:
    for step in steps:
        for_s = max(0.0, time.time() - step.started_s)
        plan = f"map {step.map_generation}" if step.map_generation else "no map yet"
        yield (
            f"running: {step.run}: {step.application}, {counted(step.ranks, 'rank')} on {counted(step.nodes, 'node')}, "
            f"{for_s:.0f} s, {step.mode}, {plan}"
        )
        for who, why in (("its owner", step.stopped), ("the site", step.site_stopped)):
            if why is not None:
                yield f"  stopped by {who}{': ' if why else ''}{why}"


def _ended(
    runs: Sequence[own.Ended], log: Mapping[str, own.Line], said_of: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    told = {id_of(run) for run in log}
    if runs:
        yield f"{counted(len(runs), 'run')} ended"
        yield from table_lines(
            ("application", "fs", "started", "s", "ranks", "exit", "files", "bytes", "OST cost", "outcomes"),
            [
                (
                    run.application,
                    run.fs_name,
                    human_time(run.start_s),
                    f"{run.duration_s:.1f}",
                    run.ranks,
                    run.exit_status,
                    f"{run.files}{'' if run.complete else ' (some may be missing)'}",
                    human_bytes(run.size_bytes),
                    figure(run.ost_cost),
                    " ".join(f"{name}={count}" for name, count in run.outcomes.items()),
                )
                for run in runs
            ],
            left=3,
        )
        for run in runs:
            if run.ost_bytes:
                most = max(run.ost_bytes.values())
                yield (
                    f"  {run.application} on {run.fs_name}: OSTs {ranges.fold(sorted(run.ost_bytes))}, "
                    f"{human_bytes(most)} at most on one"
                )
            if run.not_placed and run.id.partition("-")[2] not in told:
                left_out = "; ".join(f"{why} ({counted(n, 'file')})" for why, n in run.not_placed.items())
                yield f"  {run.application} on {run.fs_name}: left to Lustre: {left_out}"
            for line_of_part in said_of.get(run.id, ()):
                yield f"  {run.application} on {run.fs_name}: {line_of_part}"
    for line in log.values():
        if not runs:  # its history is gone, or not of this node
            files = line.said.get("files", "?")
            what = f"{line.application}, {line.mode}, {f'{files} file' if files == '1' else f'{files} files'}"
            yield f"ended {line.at}: {line.run}: {what}, exit {line.said.get('exit', '?')}"
        notes = [
            f"{name}: {line.said[name]}" for name in ("stopped", "left_osts", "problem") if name in line.said
        ]
        if notes:
            yield f"  {line.run}: {'; '.join(notes)}"
        if said := reasons.sentence(line):
            yield f"  {line.run}: {said}"


def _plans(plans: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not plans:
        return
    yield f"{counted(len(plans), 'plan')}"
    yield from table_lines(
        (
            "plan",
            "application",
            "fs",
            "planned",
            "status",
            "files",
            "placed",
            "bytes",
            "OST cost",
            "bound",
            "outcomes",
        ),
        [
            (
                plan["id"],
                plan["step"]["application"],
                plan["step"]["fs_name"],
                human_time(plan["created_s"], "%Y-%m-%d %H:%M:%S"),
                plan["status"],
                plan["files"],
                plan["placed"],
                human_bytes(plan["size_bytes"]),
                f"{plan['ost_cost']:.3f}" if plan["policy"] else "-",
                f"{plan['ost_cost_bound']:.3f}" if plan["policy"] else "-",
                " ".join(f"{name}={count}" for name, count in plan["outcomes"].items()),
            )
            for plan in plans
        ],
        left=5,
    )
    for plan in plans:
        if plan["reason"]:
            yield f"  plan {plan['id']}: {plan['reason']}"
        for why, count in list(plan["left"].items())[:3]:
            yield f"  plan {plan['id']}: {counted(count, 'file')} left to Lustre: {why}"


def _promises(promises: Mapping[str, Mapping[str, Any]] | None) -> Iterator[str]:
    for of in (promises or {}).values():
        osts = {int(index): size for index, size in of["osts"].items()}
        dead = "; its step is silent" if of["dead"] else ""
        where = f"on OSTs {ranges.fold(sorted(osts))}{dead}"
        yield f"promised on {of['fs_name']}: {human_bytes(sum(osts.values()))} {where}"
    if promises is not None and not promises:
        yield "nothing is promised to it any more"
