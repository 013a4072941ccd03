"""Parameters that learn: what is set on this node, what its council has decided and learned, and why.

    tarazu change tune                  what is set here, what the council has decided, what its nodes have
    tarazu change tune show             what was learned: for each pattern the rate of each value, how sure, how often
    tarazu change tune --observe        on the council's node, as root: learn only; all nodes restore what was there
    tarazu change tune --advise         there: also say what would be set
    tarazu change tune --apply          there: have it set, on nodes whose part.council.mode says so too
                                 on such a node: let it be set there again, after --undo
    tarazu change tune --undo           on a node: restore what was there, and set nothing until --apply there; needs
                                 no daemon. On the council's node: as --observe

If one OSS behaves oddly: `tarazu change tune --undo` there. If all do: the same on the council's node, or
`tarazu disable --site`. The mode ordered last outlives restarts and overrides the council's part.council.mode.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping
from typing import Any

from tarazu import config
from tarazu.cli.output import action_options, print_json, print_table, say
from tarazu.errors import BadInput, TarazuError, Unavailable
from tarazu.parts.changes import by_hand, here
from tarazu.parts.changes.commands import rows, undo
from tarazu.parts.changes.commands.person import login
from tarazu.parts.council.settings import announcer_of, council_of, options_of
from tarazu.units import counted

AGENT, VERB = "parameters", "tarazu change tune"
MODES = ("observe", "advise", "apply")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=["show"], help="what was learned, too")
    action_options(
        parser,
        {
            "--observe": "on the council's node: only learn",
            "--advise": "on the council's node: say what would be set",
            "--apply": "on the council's node: have it set; on a node: (again) after --undo",
            "--undo": "restore what was there",
        },
    )


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    mode = next((mode for mode in MODES if getattr(options, mode)), "")
    if options.what and (mode or options.undo):
        raise BadInput("tarazu change tune show", "no option that changes something", "one")
    if options.undo:
        return _undo(settings, as_json=options.json)
    if mode:
        return _order(settings, mode, as_json=options.json)
    return _show(settings, learned=options.what == "show", as_json=options.json)


def _is_council(settings: config.Settings) -> bool:
    return os.path.isdir(council_of(settings))


def _is_node(settings: config.Settings) -> bool:
    """Something may have been set here."""
    return os.path.isdir(announcer_of(settings))


def _nothing_here() -> BadInput:
    return BadInput(
        "this node", "tarazu-council or tarazu-announcer at work, now or earlier (docs/tuning.md)", "neither"
    )


def _show(settings: config.Settings, *, learned: bool, as_json: bool) -> int:
    council, problem, agents = {}, "", here.listed(settings, AGENT)
    try:
        council = _council(settings)
    except TarazuError as error:
        if not agents:
            raise
        problem = str(error)
    if as_json:
        told = council if learned else {name: value for name, value in council.items() if name != "learned"}
        print_json({**rows.as_json(agents), "council": told, "problem": problem})
        return 0
    if agents:
        say(f"this node: {options_of(settings).mode} (part.council.mode)")
    rows.say_changes(agents)
    if problem:
        say(f"cannot tell what the council decides: {problem}")
        return 0
    try:
        _print_council(council)
        if learned:
            print()
            _print_learned(council["learned"])
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise Unavailable(
            f"the council's answer: expected this version's form, found another: "
            f"{type(error).__name__} {error}; tarazu change tune --json shows it"
        ) from None
    return 0


def _council(settings: config.Settings) -> dict[str, Any]:
    """How the council is, with what it has learned: it is asked; on its own node its files are read where it does not
    answer. Raises TarazuError.
    """
    from tarazu.parts.council.here import ask
    from tarazu.parts.council.here import here as council_here

    try:
        if not options_of(settings).address:
            raise Unavailable("part.council.address is empty: this node has no council")
        return {**ask(settings), "silent": ""}
    except TarazuError as error:
        council = council_here(settings)
        if council is None:
            if not _is_node(settings) and not options_of(settings).address:
                raise _nothing_here() from None
            raise
        if council.unread:
            raise Unavailable(f"{error}; {council.unread}") from None
        return {
            "mode": council.mode,
            "why_mode": council.why,
            "learned": council.learned,
            "silent": str(error),
        }


def _undo(settings: config.Settings, *, as_json: bool) -> int:
    from tarazu.parts.council.here import set_mode

    council = _is_council(settings)
    node = _is_node(settings) or (bool(options_of(settings).levers) and not council)
    if not council and not node:
        raise _nothing_here()
    before, problem = None, ""
    if council:
        # First: what is restored here it would else have set again.
        try:
            before = set_mode(settings, "observe", f"{VERB} --undo")
        except TarazuError as error:
            problem = str(error)
    done = undo.take_back(here.agent_named(settings, AGENT), VERB) if node else None
    if as_json:
        print_json({"here": done and done._asdict(), "council_was": before, "problem": problem})
    elif before is not None:
        print(f"the council's mode is observe (it was {before}): its nodes restore what was there")
    elif problem:
        say(f"the council's mode is as it was: {problem}")
    if done is not None and not as_json:
        undo.tell(done, f"{VERB} --apply")
    return int(bool(problem or (done and done.failed)))


def _order(settings: config.Settings, mode: str, *, as_json: bool) -> int:
    from tarazu.parts.council.here import set_mode

    council, node = _is_council(settings), _is_node(settings) and mode == "apply"
    if not council and not node:
        if _is_node(settings):
            raise BadInput(
                f"--{mode}", "the council's node; a node's own mode is part.council.mode", "a node of it"
            )
        raise _nothing_here()
    held = node and here.agent_named(settings, AGENT).store.held
    if not council and not held and options_of(settings).mode != "apply":
        raise BadInput(
            "part.council.mode",
            "apply on this node, before anything can be set here",
            options_of(settings).mode,
        )
    before = set_mode(settings, mode, f"{VERB} --{mode}") if council else None  # type: ignore[arg-type]
    outcomes = dict(by_hand.go_on(settings, login(), AGENT)) if node else {}
    if as_json:
        print_json({"council_was": before, "here": outcomes})
        return 0
    if before is not None:
        print(
            f"the council's mode is {mode} (it was {before}), within a second and after restarts\n"
            f"undo: {VERB} --{before}"
        )
    if not node:
        return 0
    if options_of(settings).mode != "apply":
        print(f"part.council.mode of this node is {options_of(settings).mode}")
    return rows.say_each(settings, outcomes.items(), "goes on", "was not stopped")


def _print_council(found: Mapping[str, Any]) -> None:
    mode = f"{found['mode']} ({found['why_mode']})"
    if found["silent"]:
        say(f"council: {mode}; it does not answer ({found['silent']})")
        return
    group = f" of {found['group']}" if found["group"] else ""
    say(
        f"council {found['council']}{group}: {mode}, learner {found['learner']}; "
        f"{counted(len(found['nodes']), 'node')}, "
        f"{found['nodes_with_io']} with I/O; {counted(found['choices'], 'choice')}, {found['explored']} to learn, "
        f"{found['taken_back']} taken back"
    )
    decision = found["decision"]
    if decision["generation"]:
        values = ", ".join(f"{lever} {value}" for lever, value in decision["values"].items())
        say(f"  decided: {values or 'nothing'}; {decision['since_s']:.0f} s ago, {decision['why']}")
    else:
        say(f"  {decision['why']}")
    for lever, value in found["advice"].items():
        say(f"  would set: {lever} {value}")
    for lever, values in found["in_force"].items():
        say(f"  {lever}: " + ", ".join(f"{value} on {count}" for value, count in values.items()))
    if found["nodes"]:
        print()
        print_table(
            ("node", "kind", "mode", "in force", "age s", "MB/s"),
            [
                (
                    name,
                    node["kind"],
                    node["mode"],
                    ", ".join(f"{lever} {value}" for lever, value in node["in_force"].items()) or "-",
                    f"{node['age_s']:.0f}",
                    f"{node['bytes_per_s'] / 1e6:.1f}",
                )
                for name, node in found["nodes"].items()
            ],
            left=4,
        )
        for name, node in found["nodes"].items():
            if node.get("decided"):
                say(f"{name}: {', '.join(map(' '.join, node['decided'].items()))}: {node['why']}")
            for lever, value in node.get("advice", {}).items():
                say(f"{name}: would set {lever} {value}")
            if node["problem"]:
                say(f"{name}: {node['problem']}")


def _print_learned(rows: Iterable[Mapping[str, Any]]) -> None:
    """A row for each pattern and value, a node's patterns that are seen now first."""
    cells = [
        (
            row["node"],
            f"{row['pattern']}{', now' * bool(row['nodes_now'])}",
            row["lever"],
            row["value"],
            "best" * row["best"],
            "decided" * row["decided"],
            *(_mb_s(row[name]) for name in ("bytes_per_s", "low", "high")),
            f"{row['seen']:.0f}",
        )
        for row in sorted(rows, key=lambda row: (row["node"], -row["nodes_now"]))
    ]
    if not cells:
        say("nothing was learned yet")
        return
    print_table(
        ("node", "pattern", "lever", "value", "", "", "MB/s", "95 %: from", "to", "intervals"), cells, left=6
    )


def _mb_s(rate: float | None) -> str:
    return "?" if rate is None else f"{rate / 1e6:.1f}"
