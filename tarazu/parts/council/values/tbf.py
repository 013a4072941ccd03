"""Lever `nrs_tbf_rule`: one rule, named `tarazu`, of the token bucket filter (`ost.OSS.ost_io.nrs_tbf_rule`).

A rule limits: what it matches gets so many RPCs a second of each partition (CPT) of the server, and no more. So there
are no rules but those that a site lists, `nrs_tbf_rule=none | jobid={ior.*} rate=1000`, and TBF itself is never started
or stopped: an administrator has it in force, of the type that the rules need (`tbf jobid`), in both queues. Other rules
are left alone. Rules vanish with their policy.

Kinds of rules: `nid`, `jobid`, `opcode`, `uid`, `gid`; `projid` since 2.17; `nodemap` since 2.17.55, by names of
nodemaps that the server knows (nrs_tbf.c, nrs_tbf_expression_parse). A type names one or, joined by `+`, several of
them; TBF without a type takes all that its version has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tarazu.errors import BadInput
from tarazu.parts.council.values.nrs import SECTIONS, SERVICE

RULES = f"{SERVICE}.nrs_tbf_rule"
RULE = "tarazu"
NONE = "none"
MAX_RATE = 999_999
"""2.12 takes 65,534 at most, and refuses more."""
_IDS = re.compile(r" *[0-9]{1,10}(?: +[0-9]{1,10})* *")
_NODEMAPS = re.compile(r" *[A-Za-z0-9_]{1,16}(?: +[A-Za-z0-9_]{1,16})* *")
KINDS: dict[str, re.Pattern[str] | None] = {
    "nid": None, "jobid": None, "opcode": None, "uid": _IDS, "gid": _IDS, "projid": _IDS, "nodemap": _NODEMAPS,
}  # fmt: skip
"""Kind of rule → what stands between its braces, where that is known."""
SINCE = {"projid": (2, 16, 60), "nodemap": (2, 17, 55)}
"""Of kinds that not every supported version has; both between two releases."""
_EXPRESSION = re.compile(r"(\w+)=\{([^{}]+)\}")
_LISTED = re.compile(
    rf"(?P<matches>{_EXPRESSION.pattern}(?:[&,]{_EXPRESSION.pattern})*) rate=(?P<rate>[1-9][0-9]{{0,5}})"
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
            "part.council.levers: nrs_tbf_rule",
            f"none, or a rule such as jobid={{ior.*}} rate=1000 with a rate up to {MAX_RATE}",
            value,
        )
    for kind, text in _EXPRESSION.findall(value):
        if kind not in KINDS:
            raise BadInput(
                "part.council.levers: nrs_tbf_rule", f"a kind among {', '.join(KINDS)}", f"{kind} in {value}"
            )
        form = KINDS[kind]
        numbers = re.findall(r"[0-9]+", text) if form is _IDS else []
        if form and (not form.fullmatch(text) or any(int(number) >= 2**32 for number in numbers)):
            wanted = "numbers below 2^32" if form is _IDS else "names of nodemaps"
            raise BadInput(f"part.council.levers: nrs_tbf_rule: {kind}", wanted, text)
    return value


def why_not(value: str, policy: str, version: tuple[int, ...] | None) -> str:
    """Why a server with this policy in force (`tbf jobid`, as `nrs_policies` has it) has no such rule; empty: it may.

    version: None where it is not known, or a vendor's with patches of its own.
    """
    allowed = policy.partition(" ")[2]
    for kind, _ in _EXPRESSION.findall(value):
        if allowed and allowed != "generic" and kind not in allowed.split("+"):
            return f"expected tbf {kind}, found {policy}"
        if version and version < SINCE.get(kind, ()):
            return f"expected Lustre {'.'.join(map(str, SINCE[kind]))} for {kind}, found {'.'.join(map(str, version))}"
    return ""


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
