"""Which LNet routers running jobs' data take, and why.

    tarazu change routers               what is planned for each job, what OSSs have set; on an OSS also what is there
    tarazu change routers --advise      also the rules of every OSS, as lnetctl commands; changes nothing
    tarazu change routers --apply       on an OSS, as root: let tarazu-ossd --routers set rules (again, after --undo)
    tarazu change routers --undo        on an OSS, as root: take back every rule of tarazu's, and set none until --apply

Rules are set where `part.routers.mode` is `apply`, on the OSS and at mdsd. --undo needs neither mdsd nor a daemon;
`tarazu disable --site` does it on all OSSs. `slowdown`: a job's expected I/O time over that with the best number of
routers for it alone; `all alike`: the same without rules. Users see their own jobs.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from tarazu import config
from tarazu.cli.output import action_options, print_json, print_table, say
from tarazu.daemons.asking import status_of
from tarazu.errors import BadInput, TarazuError, Unavailable
from tarazu.parts.changes import here
from tarazu.parts.changes.commands import apply, rows, undo
from tarazu.parts.changes.commands.person import login
from tarazu.parts.routers.settings import Routers
from tarazu.units import counted, figure

AGENT, VERB = "routers", "tarazu change routers"


def configure(parser: argparse.ArgumentParser) -> None:
    action_options(
        parser,
        {
            "--advise": "the rules too; change nothing",
            "--apply": "let rules be set on this OSS (again)",
            "--undo": "take back what tarazu has set on this OSS",
        },
    )


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    if options.undo:
        return undo.one_agent(here.agent_named(settings, AGENT), VERB, as_json=options.json)
    if options.apply:
        held = here.agent_named(settings, AGENT).store.held
        if (mode := settings.part.of("routers", Routers).mode) != "apply" and not held:
            raise BadInput(
                "part.routers.mode", "apply on this server and at mdsd, before rules can be set", mode
            )
        if mode != "apply" and not options.json:
            print(f"part.routers.mode of this server is {mode}")
        return apply.go_on(settings, login(), AGENT, as_json=options.json)
    agents, problem = here.listed(settings, AGENT), ""
    planned: Mapping[str, Any] = {}
    try:
        planned = _planned(settings)
    except TarazuError as error:
        if not agents:
            raise
        problem = str(error)
    if options.json:
        print_json({**rows.as_json(agents), "mdsd": planned, "problem": problem})
        return 0
    rows.say_changes(agents)
    if problem:
        say(f"cannot tell what mdsd plans: {problem}")
    else:
        _print_planned(planned, options.advise)
    return 0


def _planned(settings: config.Settings) -> Mapping[str, Any]:
    """mdsd's part of its status. Raises Unavailable."""
    mdsd = status_of(settings)["mdsd"]
    if "unavailable" in mdsd:
        raise Unavailable(f"mdsd: {mdsd['unavailable']}")
    routers: Mapping[str, Any] = mdsd["parts"].get("routers") or {"failed": "it has no part of this name"}
    if "failed" in routers:
        raise Unavailable(f"mdsd: no routers are planned: {routers['failed']}")
    return routers


def _print_planned(found: Mapping[str, Any], rules: bool) -> None:
    say(line_of(found))
    if found["mode"] == "observe":
        return
    for way, names in found["routers"].items():
        say(f"  {way}: {names or 'no router is up'}")
    if mapping := found.get("mapping"):
        say(mapping_line(mapping))
    if found["jobs"]:
        print()
        print_table(
            ("job", "user", "fs", "nodes", "routers", "of which", "slowdown", "all alike", "notes"),
            [
                (
                    job["job"] or "-",
                    job["uid"],
                    job["fs"],
                    job["nodes"],
                    job["count"] or "all",
                    job["routers"] or "-",
                    figure(job["slowdown"], ".2f"),
                    figure(job["alike"], ".2f"),
                    job["why"] or ("" if job["known"] else "its I/O is unknown"),
                )
                for job in found["jobs"]
            ],
        )
    if found["osses"]:
        print()
        print_table(
            ("OSS", "age s", "its mode", "routers up", "down", "rules set"),
            [
                (name, f"{o['age_s']:.0f}", o["mode"], o["up"], " ".join(o["down"]) or "-", o["rules_set"])
                for name, o in found["osses"].items()
            ],
        )
    if rules:
        _print_rules(found)


def _print_rules(found: Mapping[str, Any]) -> None:
    servers: dict[tuple[str, ...], list[str]] = {}
    if any("rules" not in oss for oss in found["osses"].values()):
        print("\nonly root sees the rules, which name the nodes of all jobs")
        return
    for name, oss in found["osses"].items():
        servers.setdefault(tuple(oss["rules"]), []).append(name)
    for rules, names in servers.items():
        print()
        say(f"# on {', '.join(names)}:")
        for rule in rules:
            say(f"lnetctl udsp add {rule}")
        if not rules:
            print("# no rule")


def job_line(of: Mapping[str, Any]) -> str:
    """One of its jobs, on one file system."""
    why = f" ({of['why']})" if of["why"] else ""
    return f"routers on {of['fs']}: {of['routers'] or 'all'} for {counted(of['nodes'], 'node')}{why}"


def line_of(found: Mapping[str, Any]) -> str:
    """mdsd's part in one line."""
    if found["mode"] == "observe":
        return "routers of jobs: observe: none are planned (part.routers.mode)"
    own = sum(job["count"] > 0 for job in found["jobs"])
    rules = sum(oss["rules_set"] for oss in found["osses"].values())
    learning = "; has just begun, and learns which jobs run" if found["learning"] else ""
    scheduler = found["scheduler"]
    trouble = f"; scheduler: {scheduler['problem']}" if scheduler and scheduler["problem"] else ""
    return (
        f"routers of jobs: {found['mode']}, policy {found['policy']}; {counted(found['steps'], 'step')} told, "
        f"{own} with routers of their own; asked by {counted(len(found['osses']), 'OSS')}, "
        f"{counted(rules, 'rule')} set{learning}{trouble}"
    )


def mapping_line(mapping: Mapping[str, Any]) -> str:
    """Of nodes without a job's rule."""
    if mapping["problem"]:
        return f"mapping of nodes to routers: none is followed: {mapping['problem']}"
    mapped = mapping.get("mapped", {})
    rules = ", ".join(
        f"{way}: {count} rules for {mapped.get(way, 'some')} of them"
        for way, count in mapping["rules"].items()
    )
    rules = rules or "no router is up"
    nodes = counted(mapping["nodes"], "node")
    return f"mapping of nodes to routers: {mapping['how']} of {mapping['made']}, {nodes}; {rules}"
