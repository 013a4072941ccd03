"""A stand-in for `lnetctl` on a testbed's OSS: `python lnetctl.py TB/oss/NAME udsp show`.

Answers, errors and exit statuses are those captured on Lustre 2.17.57 (tests/data/lustre/control/lnet-routes-udsp.txt);
what was not captured is as in its source: a rule that is there already gives EALREADY, and a list of numbers that
begins with a single one is printed without its brackets. Knows rules that `udsp add` makes, and `route show`; imports
nothing of tarazu.

TB/oss/NAME/lnet/rules.json     the rules, in order; gone when that directory is, as after a boot
TB/oss/NAME/lnet/routes.json    [net, gateway, Unix time from which it is known to be down, or null]
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import sys
import time

RULE = ("src", "dst", "rte", "priority")
NIDS = re.compile(
    r"(?:(?P<address>[\d.\[\],*/-]+)@)?(?P<net>(?:tcp|o2ib|gip|efa|gni|kfi|ptlf|bxi3f)\d{0,5})", re.ASCII
)
NUMBERS = re.compile(r"\d+|\*|\[\d+(?:-\d+(?:/\d+)?)?(?:,\d+(?:-\d+(?:/\d+)?)?)*\]")

Rule = dict[str, "str | int"]


def shown(text: str) -> str:
    """NIDs as `udsp show` prints them."""
    found = NIDS.fullmatch(text)
    if not found:
        raise ValueError(text)
    net = re.sub(r"^([a-z]+|o2ib|bxi3f)0$", r"\1", found["net"])
    if found["address"] is None:
        return net
    places = found["address"].split(".")
    if len(places) not in (1, 4) or not all(map(NUMBERS.fullmatch, places)):
        raise ValueError(text)
    return ".".join(map(_place, places)) + "@" + net


def _place(text: str) -> str:
    if text == "*":
        return "[0-255]"
    items, out, bracket = text.strip("[]").split(","), "", False
    for number, item in enumerate(items):
        if "-" in item:
            out += ("[" if number == 0 else "") + item + ","
            bracket = True
        else:
            out += item + "."
    return out[:-1] + ("]" if bracket else "")


class Rules:
    """The rules of one node, under a lock."""

    def __init__(self, directory: str) -> None:
        os.makedirs(directory, exist_ok=True)
        self._path = os.path.join(directory, "rules.json")
        self._lock = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            with open(self._path) as file:
                self.rules: list[Rule] = json.load(file)
        except FileNotFoundError:
            self.rules = []

    def save(self) -> None:
        with open(f"{self._path}.new", "w") as file:
            json.dump(self.rules, file)
        os.replace(f"{self._path}.new", self._path)


def failed(number: int, text: str, status: int) -> int:
    """As lnetctl's YAML of an error, on its standard error."""
    print(f'add:\n    - udsp:\n          errno: {number}\n          descr: "{text}"', file=sys.stderr)
    return status & 0xFF


def show(rules: list[Rule]) -> int:
    if rules:
        print("udsp:")
    for idx, rule in enumerate(rules):
        print(f"    - idx: {idx}")
        for name in ("src", "dst", "rte"):
            if name in rule:
                print(f"      {name}: {rule[name]}")
        if "priority" in rule:
            print(f"      action:\n          priority: {rule['priority']}")
    return 0


def add(kept: Rules, options: Options) -> int:
    rule: Rule = {}
    for name in ("src", "dst", "rte"):
        text = getattr(options, name)
        if text is not None:
            try:
                rule[name] = shown(text)
            except ValueError:
                return failed(-errno.EINVAL, f"failed to parse {name} parameter", -errno.EINVAL)
    if not rule or ("src" in rule and "rte" in rule):
        return failed(-errno.EINVAL, "Missing required argument(s)", -errno.EINVAL)
    if any(
        {name: old.get(name) for name in RULE[:3]} == {n: rule.get(n) for n in RULE[:3]} for old in kept.rules
    ):
        return failed(errno.EALREADY, f"cannot add udsp: {os.strerror(errno.EALREADY)}", errno.EALREADY)
    if options.priority is not None:
        rule["priority"] = options.priority
    elif "rte" not in rule:
        rule["priority"] = 0
    kept.rules.insert(len(kept.rules) if options.idx is None else options.idx, rule)
    kept.save()
    return 0


def delete(kept: Rules, idx: int) -> int:
    if not 0 <= idx < len(kept.rules):
        return failed(-errno.ENOENT, f"cannot del udsp: {os.strerror(errno.ENOENT)}", -errno.ENOENT)
    del kept.rules[idx]
    kept.save()
    return 0


def routes(directory: str) -> int:
    try:
        with open(os.path.join(directory, "routes.json")) as file:
            found = json.load(file)
    except FileNotFoundError:
        found = []
    if found:
        print("route:")
    for net, gateway, down_s in found:
        state = "down" if down_s is not None and down_s <= time.time() else "up"
        print(f"-     net: {net}\n      gateway: {gateway}\n      hop: -1\n      priority: 0")
        print(f"      state: {state}\n      type: single-hop")
    return 0


class Options:
    """`--name value` words."""

    def __init__(self, words: list[str]) -> None:
        self.src: str | None = None
        self.dst: str | None = None
        self.rte: str | None = None
        self.priority: int | None = None
        self.idx: int | None = None
        for name, value in zip(words[::2], words[1::2], strict=True):
            if name not in ("--src", "--dst", "--rte", "--priority", "--idx"):
                raise ValueError(name)
            setattr(self, name[2:], int(value) if name in ("--priority", "--idx") else value)


def main(words: list[str]) -> int:
    directory, *words = words
    lnet = os.path.join(directory, "lnet")
    if words[:2] == ["route", "show"]:
        return routes(lnet)
    try:
        options = Options(words[2:])
    except ValueError:
        words = []
    if words[:1] != ["udsp"] or words[1] not in ("show", "add", "del"):
        print("udsp {add | del | show}, route show [-v]")
        return 1
    kept = Rules(lnet)
    if words[1] == "show":
        return show(kept.rules)
    return (
        add(kept, options) if words[1] == "add" else delete(kept, -1 if options.idx is None else options.idx)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
