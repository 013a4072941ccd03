"""A stand-in for `lnetctl` on a testbed's OSS: `python lnetctl.py TB/oss/NAME udsp show`.

Answers, errors and exit statuses are those captured on Lustre 2.17.57 (tests/data/lustre/control/lnet-routes-udsp.txt);
what was not captured is as in its source: a rule that is there already gives EALREADY, and a list of numbers that
begins with a single one is printed without its brackets. Knows rules that `udsp add` makes; imports
nothing of tarazu, and little else: it is started often.

LNet is not loaded where TB/oss/NAME/sys/kernel/debug/lnet is not there.

TB/oss/NAME/lnet/rules     a line a rule: src, dst, rte and priority between tabs, empty what it has not; gone when that
                           directory is, as after a boot
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sys

NETS = ("tcp", "o2ib", "gip", "efa", "gni", "kfi", "ptlf", "bxi3f")

Rule = list[str]
"""src, dst, rte, priority."""


def shown(text: str) -> str:
    """NIDs as `udsp show` prints them. Raises ValueError."""
    address, at, net = text.rpartition("@")
    name = net.rstrip("0123456789")
    if name not in NETS:
        raise ValueError(text)
    net = name + net[len(name) :].lstrip("0")
    if not at:
        return net
    places = address.split(".")
    if len(places) not in (1, 4):
        raise ValueError(text)
    return ".".join(map(_place, places)) + "@" + net


def _place(text: str) -> str:
    if text == "*":
        return "[0-255]"
    in_brackets = text[:1] == "[" and text[-1:] == "]"
    out, bracket = "", False
    for number, item in enumerate(text[1:-1].split(",") if in_brackets else [text]):
        first, dash, rest = item.partition("-")
        last, slash, step = rest.partition("/")
        wanted = [first] + [last] * bool(dash) + [step] * bool(slash)
        if not all(map(str.isdecimal, wanted)) or (dash and not in_brackets):
            raise ValueError(text)
        if dash:
            out += ("[" if number == 0 else "") + item + ","
            bracket = True
        else:
            out += item + "."
    return out[:-1] + ("]" if bracket else "")


class Rules:
    """The rules of one node, under a lock."""

    def __init__(self, directory: str) -> None:
        os.makedirs(directory, exist_ok=True)
        self._path = os.path.join(directory, "rules")
        self._lock = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            with open(self._path) as file:
                self.rules = [line.rstrip("\n").split("\t") for line in file]
        except FileNotFoundError:
            self.rules = []

    def close(self) -> None:
        os.close(self._lock)

    def save(self) -> None:
        with open(f"{self._path}.new", "w") as file:
            file.writelines("\t".join(rule) + "\n" for rule in self.rules)
        os.replace(f"{self._path}.new", self._path)


def failed(number: int, text: str, status: int) -> int:
    """As lnetctl's YAML of an error, on its standard error."""
    print(f'add:\n    - udsp:\n          errno: {number}\n          descr: "{text}"', file=sys.stderr)
    return status & 0xFF


def show(rules: list[Rule]) -> int:
    if rules:
        print("udsp:")
    for idx, (src, dst, rte, priority) in enumerate(rules):
        print(f"    - idx: {idx}")
        for name, text in (("src", src), ("dst", dst), ("rte", rte)):
            if text:
                print(f"      {name}: {text}")
        if priority:
            print(f"      action:\n          priority: {priority}")
    return 0


def add(kept: Rules, options: LnetctlOptions) -> int:
    rule = []
    for name, text in (("src", options.src), ("dst", options.dst), ("rte", options.rte)):
        try:
            rule.append(shown(text) if text else "")
        except ValueError:
            return failed(-errno.EINVAL, f"failed to parse {name} parameter", -errno.EINVAL)
    src, _, rte = rule
    if not any(rule) or (src and rte):
        return failed(-errno.EINVAL, "Missing required argument(s)", -errno.EINVAL)
    if any(old[:3] == rule for old in kept.rules):
        return failed(errno.EALREADY, f"cannot add udsp: {os.strerror(errno.EALREADY)}", errno.EALREADY)
    priority = options.priority if options.priority is not None else 0 if not rte else None
    rule.append("" if priority is None else str(priority))
    kept.rules.insert(len(kept.rules) if options.idx is None else options.idx, rule)
    kept.save()
    return 0


def delete(kept: Rules, idx: int) -> int:
    if not 0 <= idx < len(kept.rules):
        return failed(-errno.ENOENT, f"cannot del udsp: {os.strerror(errno.ENOENT)}", -errno.ENOENT)
    del kept.rules[idx]
    kept.save()
    return 0


class LnetctlOptions:
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
    try:
        options = LnetctlOptions(words[2:])
    except ValueError:
        words = []
    if words[:1] != ["udsp"] or words[1] not in ("show", "add", "del"):
        print("udsp {add | del | show}")
        return 1
    if not os.path.isdir(os.path.join(directory, "sys/kernel/debug/lnet")):
        print(f"opening /dev/lnet failed: {os.strerror(errno.ENOENT)}", file=sys.stderr)
        print("hint: the kernel modules may not be loaded", file=sys.stderr)
        if words[1] == "show":
            return 0
        return failed(errno.ENOENT, f"cannot {words[1]} udsp: {os.strerror(errno.ENOENT)}", errno.ENOENT)
    kept = Rules(lnet)
    try:
        if words[1] == "show":
            return show(kept.rules)
        if words[1] == "add":
            return add(kept, options)
        return delete(kept, -1 if options.idx is None else options.idx)
    finally:
        kept.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
