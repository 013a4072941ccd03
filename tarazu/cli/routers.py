"""Which LNet routers running jobs' data take, and why.

    tarazu change routers               what is planned for which job, what OSSs have set; on an OSS also what is there
    tarazu change routers --advise      also the rules of every OSS, as lnetctl commands; changes nothing
    tarazu change routers --apply       on an OSS, as root: let tarazu-ossd --routers set rules (again, after --undo)
    tarazu change routers --undo        on an OSS, as root: take back every rule of tarazu's, and set none until --apply

Rules are set where `forwarding.routers` is `apply`, on the OSS and at mdsd. --undo needs neither mdsd nor a daemon;
`tarazu disable --site` does it on all OSSs, through mdsd. `slowdown` is the time that a job's I/O is expected to take,
over that of the best number of routers for it alone; `all alike` the same without rules. Users see their own jobs.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tarazu import config
from tarazu.cli.output import action_options, print_json, print_table, say
from tarazu.daemons.asking import status_of
from tarazu.errors import BadInput, TarazuError, Unavailable
from tarazu.units import figure


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
        return _undo(settings, as_json=options.json)
    if options.apply:
        return _apply(settings, as_json=options.json)
    here, unread, problem = None, "", ""
    try:
        here = _set_here(settings)
    except TarazuError as error:
        unread = str(error)
    planned: Mapping[str, Any] = {}
    try:
        planned = _planned(settings)
    except TarazuError as error:
        if here is None and not unread:
            raise
        problem = str(error)
    if options.json:
        print_json({"here": here, "unread": unread, "mdsd": planned, "problem": problem})
        return 0
    if unread:
        say(f"what tarazu has set on this server is not known: {unread}")
    if here:
        _print_here(here)
    if problem:
        say(f"what mdsd plans is not known here: {problem}")
    else:
        _print_planned(planned, options.advise)
    return 0


def _planned(settings: config.Settings) -> Mapping[str, Any]:
    """mdsd's part of its status. Raises Unavailable."""
    mdsd = status_of(settings)["mdsd"]
    if "routers" not in mdsd:
        raise Unavailable(
            f"mdsd: {mdsd.get('unavailable', 'expected its routers, found an earlier version')}"
        )
    routers: Mapping[str, Any] = mdsd["routers"]
    return routers


def _set_here(settings: config.Settings) -> dict[str, Any] | None:
    """What tarazu has set on this server; None where it keeps no notes. Raises TarazuError for unreadable ones."""
    from tarazu.daemons.changes.agents.routers import agent_of

    if not Path(settings.state.routers).is_dir():
        return None
    store = agent_of(settings).store
    with store.locked():
        held = store.held_changes.values()
        rules = [each.change.target for each in held if not each.theirs]
        return {"rules": rules, "held": store.held, "why_held": store.nothing_new()}


def _undo(settings: config.Settings, *, as_json: bool) -> int:
    from tarazu.daemons.changes.agents.routers import agent_of

    done, not_held = agent_of(settings, "tarazu change routers").undo("tarazu change routers --undo")
    deleted = [held.change.target for held in done.restored]
    left = {key[1]: why for key, why in done.failed if key[1] not in deleted}
    if as_json:
        print_json({"deleted": deleted, "left": left, "not_held": not_held})
        return 1 if left or not_held else 0
    for rule in deleted:
        print(f"deleted: {rule}")
    for rule, why in left.items():
        say(f"still set: {rule}: {why}")
    if not deleted and not left:
        print("nothing to undo: tarazu has set no rule on this server")
    if not_held:
        say(f"the daemon may set rules again: {not_held}; stop it: systemctl stop tarazu-ossd-routers")
    else:
        print("none is set again until `tarazu change routers --apply`")
    return 1 if left or not_held else 0


def _apply(settings: config.Settings, *, as_json: bool) -> int:
    from tarazu.daemons.changes.agents.routers import agent_of

    mode = settings.forwarding.routers
    if mode != "apply":
        raise BadInput(
            "forwarding.routers", "apply on this server and at mdsd, before rules can be set", mode
        )
    was_held = agent_of(settings, "tarazu change routers").resume()
    here = _set_here(settings)
    if as_json:
        print_json({"was_held": was_held, "here": here})
        return 0
    print("rules may be set again" if was_held else "rules may be set; they were not held back")
    print("tarazu-ossd --routers takes them from mdsd within 10 s")
    if here:
        _print_here(here)
    return 0


def _print_here(here: Mapping[str, Any]) -> None:
    held = f"; no new ones: {here['why_held']}" if here["why_held"] else ""
    print(f"this server has {len(here['rules'])} rules of tarazu's{held}")
    for rule in here["rules"]:
        print(f"  {rule}")


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
                    job["why"] or ("" if job["known"] else "nothing is known of its I/O"),
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
        print("\nrules, which name the nodes of all jobs, are for root to see")
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


def line_of(found: Mapping[str, Any]) -> str:
    """mdsd's part in one line."""
    if found["mode"] == "observe":
        return "routers of jobs: observe: none are planned (forwarding.routers)"
    own = sum(job["count"] > 0 for job in found["jobs"])
    rules = sum(oss["rules_set"] for oss in found["osses"].values())
    learning = "; has just begun, and learns which jobs run" if found["learning"] else ""
    scheduler = found["scheduler"]
    trouble = f"; scheduler: {scheduler['problem']}" if scheduler and scheduler["problem"] else ""
    return (
        f"routers of jobs: {found['mode']}, policy {found['policy']}; {found['steps']} steps told, {own} have routers "
        f"of their own; {len(found['osses'])} OSSs ask, {rules} rules set{learning}{trouble}"
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
    return f"mapping of nodes to routers: {mapping['how']} of {mapping['made']}, {mapping['nodes']} nodes; {rules}"
