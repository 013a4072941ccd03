"""Lever `nrs_tbf_rule`: one rule, named `tarazu`, of the token bucket filter (`ost.OSS.ost_io.nrs_tbf_rule`).

A rule limits: what it matches gets so many RPCs a second of each partition (CPT) of the server, and no more. So there
are no rules but those that a site lists, `nrs_tbf_rule=none | jobid={ior.*} rate=1000`, and TBF itself is never started
or stopped: an administrator has it in force, of the type that the rules need (`tbf jobid`), in both queues. Other rules
are left alone. Rules vanish with their policy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tarazu.errors import BadInput, Unavailable
from tarazu.tune.lever import Before, LeverParameter
from tarazu.tune.levers import files
from tarazu.tune.levers.base import Parameters, Setter
from tarazu.tune.levers.nrs import POLICIES, SECTIONS, SERVICE, read_policies

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


class TbfRule(Parameters):
    name = "nrs_tbf_rule"

    def __init__(self, lctl: Setter, root: str | Path) -> None:
        super().__init__(lctl, root)
        self.values = (NONE,)

    def canonical(self, value: str) -> str:
        rule = _LISTED.fullmatch(value)
        if value != NONE and (rule is None or int(rule["rate"]) > MAX_RATE):
            raise BadInput(
                "tune.levers: nrs_tbf_rule",
                f"none, or a rule such as jobid={{ior.*}} rate=1000 with a rate up to {MAX_RATE}",
                value,
            )
        return value

    def now(self) -> tuple[LeverParameter, ...]:
        policies = files.find(self.root, POLICIES)
        if policies is None:
            return ()
        try:
            in_force = read_policies(policies.text)
        except BadInput as error:
            raise Unavailable(str(error)) from None
        rules = read_rules(files.read(self.root, RULES) or "")
        return tuple(
            LeverParameter(f"{RULES} {queue}", self._rule(policy, rules.get(queue, set())), policies.of)
            for queue, policy in in_force.items()
        )

    def _rule(self, policy: str, found: set[str]) -> str:
        if policy.split(maxsplit=1)[0] != "tbf" or not found:
            return f"no rules under {policy}"
        shown = {self._as_listed(each) for each in found}
        return next(iter(shown)) if len(shown) == 1 else " and ".join(sorted(shown))

    def _as_listed(self, shown: str) -> str:
        """Up to 2.17.0 the kind is not shown where TBF has a type: `{ior.*} 1000` for `jobid={ior.*} rate=1000`."""
        if not shown.startswith("{"):
            return shown
        return next((value for value in self.values if self.same(shown, value)), shown)

    def same(self, value: str, step: str) -> bool:
        return value == step or (value.startswith("{") and step.partition("=")[2] == value)

    def before(self) -> Before:
        state = super().before()
        for parameter in state.parameters:
            if parameter.value != NONE:
                raise Unavailable(
                    f"{parameter.name}: expected tbf in both queues and no rule named {RULE}, found {parameter.value}"
                )
        return state

    def between(self, value: str, steps: object) -> bool:
        """It is stopped before another one starts."""
        return value == NONE

    def write(self, wanted: Mapping[str, str]) -> None:
        shown = {parameter.name: parameter.value for parameter in self.now()}
        both = {*wanted} == {*shown} and len({*wanted.values()}) == 1 and len({*shown.values()}) == 1
        for name, value in list(wanted.items())[: 1 if both else None]:
            queue = "" if both else name.rpartition(" ")[2] + " "
            if shown[name] != NONE:
                self.lctl.set([(RULES, f"{queue}stop {RULE}")])
            if value != NONE:
                self.lctl.set([(RULES, f"{queue}start {RULE} {value}")])
