"""Parameters that learn: what is set on this node, what its council has decided and learned, and why.

    tarazu change tune                  what is in force here, what the council has decided, what its nodes have
    tarazu change tune show             what was learned: pattern by pattern the rate of each value, how sure, how often
    tarazu change tune --observe        on the council's node, as root: learn only; all nodes restore what was there
    tarazu change tune --advise         likewise; and say what would be set
    tarazu change tune --apply          on the council's node: have it set, on nodes whose tune.mode says so too
                                 on such a node: let it be set there again, after --undo
    tarazu change tune --undo           on a node: restore what was there, now, and set nothing until --apply there;
                                 needs neither daemon nor council. On the council's node: as --observe

When one OSS behaves oddly: `tarazu change tune --undo` there. When all do: the same on the council's node, or
`tarazu disable --site`. The council's mode is kept over restarts, and counts instead of its tune.mode.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tarazu import config
from tarazu.changes.held import text_of
from tarazu.cli.output import action_options, print_json, print_table, say
from tarazu.errors import BadInput, TarazuError, Unavailable

if TYPE_CHECKING:
    from tarazu.daemons.changes.agent import Agent

AGENT = "tarazu change tune"
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


def _agent(settings: config.Settings) -> Agent:
    from tarazu.daemons.changes.agents.parameters import agent_of

    return agent_of(settings, AGENT)


def set_here(settings: config.Settings) -> tuple[list[dict[str, str]], str]:
    """Levers of `tune.levers` and others that are noted: `name`, `in_force`, `set_to` (by tarazu), `before`, `left_to`
    (what somebody else set since); and why nothing is set now, whatever is wanted. Raises StoreError or Unavailable.
    """
    from tarazu.daemons.changes.agents.parameters import in_force, learns
    from tarazu.tune.levers import levers_of

    agent, wrong, listed = _agent(settings), "", dict[str, Any]()
    try:
        listed = levers_of(settings.tune.levers)
    except BadInput as error:
        wrong = str(error)
    with agent.store.locked():
        held = {each.change.lever: each for each in agent.store.held_changes.values() if learns(each)}
    levers = []
    for name in {**listed, **held}:
        row = {"name": name, "in_force": "", "set_to": "", "before": "", "left_to": ""}
        with contextlib.suppress(Unavailable, KeyError):
            row["in_force"] = in_force(agent.engine.levers[name])
        if (known := held.get(name)) and not (left := known.left_to):
            row |= {"set_to": ", ".join({*known.change.wanted.values()}), "before": text_of(known.before)}
        elif known:
            row["left_to"] = left
        levers.append(row)
    return levers, agent.engine.stopped or agent.store.stopped_by() or wrong


def undo_here(settings: config.Settings) -> dict[str, Any]:
    """Restore what was there, now, and let nothing be set before `--apply`; as `Agent.undo`: levers that are
    `restored`, `left` alone (what somebody else has set), `failed` (why), and why none is held back (`not_held`).
    """
    from tarazu.daemons.changes.agents.parameters import learns

    agent = _agent(settings)
    done, not_held = agent.undo("tarazu change tune --undo", of=learns)
    left = [held for held in agent.store.held_changes.values() if held.theirs and learns(held)]
    return {
        "restored": [held.change.lever for held in done.restored],
        "left": {held.change.lever: held.left_to for held in left},
        "failed": {failure.key[0]: failure.why for failure in done.failed},
        "not_held": not_held,
    }


def _is_council(settings: config.Settings) -> bool:
    return os.path.isdir(settings.state.council)


def _is_node(settings: config.Settings) -> bool:
    """Something may have been set here."""
    return os.path.isdir(settings.state.announcer)


def _nothing_here(settings: config.Settings) -> BadInput:
    return BadInput(
        "this node",
        f"a council's ({settings.state.council}) or an announcer's ({settings.state.announcer})",
        "neither directory",
    )


def _show(settings: config.Settings, *, learned: bool, as_json: bool) -> int:
    here, unread, council, problem = None, "", {}, ""
    if _is_node(settings):
        try:
            here = set_here(settings)
        except TarazuError as error:
            unread = str(error)
    try:
        council = _council(settings)
    except TarazuError as error:
        if here is None and not unread:
            raise
        problem = str(error)
    if as_json:
        told = council if learned else {name: value for name, value in council.items() if name != "learned"}
        levers = {"levers": here[0], "held": here[1]} if here else None
        print_json({"here": levers, "unread": unread, "council": told, "problem": problem})
        return 0
    if unread:
        say(f"what tarazu has set on this node is not known: {unread}")
    if here:
        _print_here(*here, settings.tune.mode)
    if problem:
        say(f"what the council decides is not known here: {problem}")
        return 0
    try:
        _print_council(council)
        if learned:
            print()
            for line in learned_lines(council["learned"]) or ["nothing was learned yet"]:
                say(line)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise Unavailable(
            f"what the council tells: expected it as this version of tarazu does, found another: "
            f"{type(error).__name__} {error}; tarazu change tune --json shows it"
        ) from None
    return 0


def _council(settings: config.Settings) -> dict[str, Any]:
    """How the council is, with what it has learned: it is asked; on its own node its files are read where it does not
    answer. Raises TarazuError.
    """
    from tarazu.daemons.council import here

    try:
        if not settings.tune.council:
            raise Unavailable("tune.council is empty: this node has no council")
        return {**here.ask(settings), "silent": ""}
    except TarazuError as error:
        council = here.here(settings)
        if council is None:
            if not _is_node(settings) and not settings.tune.council:
                raise _nothing_here(settings) from None
            raise
        if council.unread:
            raise Unavailable(f"{error}; {council.unread}") from None
        kept = {
            "mode": council.mode,
            "why_mode": council.why,
            "learned": council.learned,
            "silent": str(error),
        }
        return {**council.status, **kept}


def _undo(settings: config.Settings, *, as_json: bool) -> int:
    from tarazu.daemons.council import here

    council = _is_council(settings)
    node = _is_node(settings) or (bool(settings.tune.levers) and not council)
    if not council and not node:
        raise _nothing_here(settings)
    before, problem, done = None, None, None
    if council:
        # First: what is restored here it would else have set again.
        try:
            before = here.set_mode(settings, "observe", "tarazu change tune --undo")
        except TarazuError as error:
            problem = error
    if node:
        done = undo_here(settings)
    failed = bool(problem or (done and (done["failed"] or done["not_held"])))
    if as_json:
        print_json({"here": done, "council_was": before, "problem": str(problem or "")})
        return int(failed)
    if before is not None:
        print(f"the council's mode is observe (it was {before}): its nodes restore what was there")
    if done is not None:
        _print_undone(done)
    if problem is not None:
        say(f"the council's mode is as it was: {problem}")
    return int(failed)


def _print_undone(done: Mapping[str, Any]) -> None:
    for name in done["restored"]:
        say(f"restored: {name}")
    for name, value in done["left"].items():
        say(f"left alone: {name}: somebody else has set {value}")
    for name, why in done["failed"].items():
        say(f"not restored: {name}: {why}")
    if not done["restored"] and not done["left"] and not done["failed"]:
        print("nothing to restore: tarazu has set nothing on this node")
    if done["not_held"]:
        say(f"the daemon may set values again: {done['not_held']}; stop it: systemctl stop tarazu-announcer")
    else:
        print("nothing is set here until `tarazu change tune --apply` on this node")


def _order(settings: config.Settings, mode: str, *, as_json: bool) -> int:
    from tarazu.daemons.council import here

    council, node = _is_council(settings), _is_node(settings) and mode == "apply"
    if not council and not node:
        if _is_node(settings):
            raise BadInput(f"--{mode}", "the council's node; a node's own mode is tune.mode", "a node of it")
        raise _nothing_here(settings)
    if not council and settings.tune.mode != "apply":
        raise BadInput("tune.mode", "apply on this node, before anything can be set here", settings.tune.mode)
    before = here.set_mode(settings, mode, f"tarazu change tune --{mode}") if council else None  # type: ignore[arg-type]
    was_held = _agent(settings).resume() if node else None
    if as_json:
        print_json({"council_was": before, "was_held": was_held})
        return 0
    if before is not None:
        print(
            f"the council's mode is {mode} (it was {before}), within a second and after restarts\n"
            f"undo: tarazu change tune --{before}"
        )
    if was_held is not None:
        held = (
            "values may be set here again" if was_held else "values may be set here; they were not held back"
        )
        own = "" if settings.tune.mode == "apply" else f", but tune.mode of this node is {settings.tune.mode}"
        stopped = _agent(settings).store.nothing_new()
        say(held + own + (f"; but nothing new is set: {stopped}" if stopped else ""))
    return 0


def _print_here(levers: Sequence[Mapping[str, str]], why_held: str, mode: str) -> None:
    say(f"this node: {mode} (tune.mode)" + (f"; nothing is set: {why_held}" if why_held else ""))
    if levers:
        rows = []
        for row in levers:
            no = f"no: left to {row['left_to']}" if row["left_to"] else "no"
            rows.append((row["name"], row["in_force"] or "-", row["set_to"] or no, row["before"] or "-"))
        print_table(("lever", "in force", "set by tarazu", "before"), rows, left=4)


def _print_council(found: Mapping[str, Any]) -> None:
    if found["silent"]:
        say(f"the council does not answer ({found['silent']}); as it was when it last wrote:")
    say(line_of(found))
    decision = found.get("decision")
    if not decision:
        return
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
            if node["problem"]:
                say(f"{name}: {node['problem']}")


def council_lines(settings: config.Settings) -> list[str]:
    """For `tarazu status`: whether this node has the council; nothing to users, who may not look."""
    try:
        if _is_council(settings) and os.access(settings.state.council, os.W_OK):
            from tarazu.daemons.council.here import here as council_here

            if council := council_here(settings):
                return [f"this node has a council of parameters that learn: {council.mode} ({council.why})"]
    except TarazuError as error:
        return [f"parameters that learn: what the council decides is not known: {error}"]
    return []


def line_of(found: Mapping[str, Any]) -> str:
    """The council in one line."""
    mode = f"{found['mode']} ({found['why_mode']})"
    if "nodes" not in found:
        return f"council: {mode}; it has never run here"
    group = f" of {found['group']}" if found["group"] else ""
    return (
        f"council {found['council']}{group}: {mode}, learner {found['learner']}; {len(found['nodes'])} nodes, "
        f"{found['nodes_with_io']} with I/O; {found['choices']} choices, {found['explored']} to learn, "
        f"{found['taken_back']} taken back"
    )


def learned_lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the council has learned, a paragraph for each lever and pattern, the patterns that are seen now first."""
    lines: list[str] = []
    of_pattern = [
        (key, list(beliefs)) for key, beliefs in groupby(rows, key=lambda r: (r["lever"], r["pattern"]))
    ]
    of_pattern.sort(key=lambda each: -each[1][0]["nodes_now"])
    for (lever, pattern), beliefs in of_pattern:
        now = beliefs[0]["nodes_now"]
        seen = f"; seen on {now} node{'s' * (now != 1)} now" if now else ""
        lines += ["", f"{pattern} ({lever}{seen})"]
        wide = max(len(row["value"]) for row in beliefs)
        lines += [f"  {row['value']:<{wide}}  {_belief(row)}".rstrip() for row in beliefs]
    return lines[1:]


def _belief(row: Mapping[str, Any]) -> str:
    """Of one value: rate, interval, count; whether it is the best, or decided."""
    if not row["seen"]:
        return "not tried" + (", decided" if row["decided"] else "")
    high = f"{row['high'] / 1e6:.1f}" if row["high"] is not None else "?"
    notes = [word for word in ("best", "decided") if row[word]]
    count = f"{row['seen']:.0f} interval{'s' * (row['seen'] >= 1.5)}"
    told = f"{row['bytes_per_s'] / 1e6:9.1f} MB/s [{row['low'] / 1e6:.1f}, {high}]  {count}"
    return told + (f"  {', '.join(notes)}" if notes else "")
