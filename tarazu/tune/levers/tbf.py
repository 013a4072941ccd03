"""Lever `nrs_tbf_rule`: one rule, named `tarazu`, of the token bucket filter (`ost.OSS.ost_io.nrs_tbf_rule`).

A rule limits: what it matches gets so many RPCs a second of each partition (CPT) of the server, and no more. So there
are no rules but those that a site lists, `nrs_tbf_rule=none | jobid={ior.*} rate=1000`, and TBF itself is never started
or stopped: an administrator has it in force, of the type that the rules need (`tbf jobid`), in both queues. Other rules
are left alone. Rules vanish with their policy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tarazu.errors import BadInput
from tarazu.tune.levers.nrs import SECTIONS, SERVICE

RULES = f"{SERVICE}.nrs_tbf_rule"
RULE = "tarazu"
NONE = "none"
MAX_RATE = 999_999
"""2.12 takes 65,534 at most, and refuses more."""
_LISTED = re.compile(
    r"(?P<matches>(?:\w+=)?\{[^{}]+\}(?:[&,](?:\w+=)?\{[^{}]+\})*) rate=(?P<rate>[1-9][0-9]{0,5})"
)
_SHOWN = re.compile(r"(?P<name>\w+) (?P<matches>.*) (?P<rate>[0-9]+), ref -?\d+")


def read_rules(text: str) -> dict[str, set[str]]:
    """Queue → what the rule named `tarazu` is in its partitions, as the lever's values have it (`none`: it is not)."""
    rules: dict[str, set[str]] = {}
    queue, here = "", True
    for line in (*map(str.strip, text.splitlines()), "CPT"):
        if line in SECTIONS or line.startswith("CPT"):
            if queue and not here:
                rules[queue].add(NONE)
            if line in SECTIONS:
                queue, here = SECTIONS[line], True
                rules[queue] = set()
            else:
                here = False
        elif queue and (rule := _SHOWN.fullmatch(line)) and rule["name"] == RULE:
            rules[queue].add(f"{rule['matches']} rate={rule['rate']}")
            here = True
    return rules


def parse(value: str) -> str:
    """A value that a site lists. Raises BadInput."""
    rule = _LISTED.fullmatch(value)
    if value != NONE and (rule is None or int(rule["rate"]) > MAX_RATE):
        raise BadInput(
            "tune.levers: nrs_tbf_rule",
            f"none, or a rule such as jobid={{ior.*}} rate=1000 with a rate up to {MAX_RATE}",
            value,
        )
    return value


def is_as_set(value: str, step: str) -> bool:
    """Up to 2.17.0 the kind is not shown where TBF has a type: `{ior.*} rate=1000` for `jobid={ior.*} rate=1000`."""
    return value == step or (value.startswith("{") and step.partition("=")[2] == value)


def settings(wanted: Mapping[str, str], now: Mapping[str, str]) -> list[tuple[str, str]]:
    """(parameter, value) in the order in which they are set; both by queue. A rule is stopped before another starts."""
    both = {*wanted} == {*now} and len({*wanted.values()}) == 1 and len({*now.values()}) == 1
    made = []
    for queue, value in list(wanted.items())[: 1 if both else None]:
        where = "" if both else f"{queue} "
        made += [(RULES, f"{where}stop {RULE}")] if now[queue] != NONE else []
        made += [(RULES, f"{where}start {RULE} {value}")] if value != NONE else []
    return made
