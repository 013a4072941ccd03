"""A stand-in for `lctl` on a testbed's OSS or client: `python lctl.py TB/oss/NAME set_param NAME=VALUE …`.

Answers, errors and exit statuses are those captured on Lustre 2.17.57 (tests/data/lustre/control/nrs-default.txt,
nrs-set.txt, client-tunables.txt); what was not captured is as in its source: nrs*.c, lproc_ptlrpc.c, lprocfs_status.c,
lustre_param.c (of several parameters in one call the status is the last one's). Knows `get_param` of whatever lies
below that root, and `set_param` of NRS, of the client's tunables and of what keeps new files off an OST; imports
nothing of tarazu, and little else: it is started often.

ROOT/nrs/state     a line a fact: queue, name, value between tabs; gone, as after a boot, with that directory. Files of
                   ROOT/sys/kernel/debug/lustre/ost/OSS/ost_io/nrs_* follow it. A parameter whose policy is not started
                   has no file there, where Lustre's would answer "No such device"
ROOT/nrs/draining  names of policies that are still stopping: they cannot be started now
ROOT/nrs/nodemaps  names of nodemaps that the server knows, besides `default`
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import sys
from fnmatch import fnmatchcase

PLACES = ("sys/fs/lustre", "sys/kernel/debug/lustre", "proc/fs/lustre")
IO = "sys/kernel/debug/lustre/ost/OSS/ost_io"
POLICIES = ("fifo", "crrn", "orr", "trr", "tbf", "delay")
TBF_KINDS = ("nid", "jobid", "opcode", "uid", "gid", "projid", "nodemap")
QUEUES = {"reg": "regular_requests", "hp": "high_priority_requests"}
STARTS = {
    "crrn": {"quantum": "8"},
    "orr": {"quantum": "256", "offset_type": "physical", "supported": "reads"},
    "trr": {"quantum": "256", "offset_type": "physical", "supported": "reads"},
    "tbf": {"rule": "default\t*\t10000"},
    "delay": {"min": "5", "max": "300", "pct": "100"},
}
"""What a policy's parameters are when it is started."""
ALLOWED = {"offset_type": ("physical", "logical"), "supported": ("reads_and_writes", "reads", "writes")}
RPC_PAGES, PAGE_BYTES = 1024, 4096
"""What servers take at once (`brw_size` 4)."""
MEMORY_MB = 64 << 10
MAX_DIRTY_MB = 490
"""An eighth of the memory of the client whose values a testbed's clients have (`tunables.MEMORY_KB`)."""


class No(Exception):
    """An errno."""


class Nrs:
    """The queues of one OSS's `ost_io`."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.facts: dict[tuple[str, str], str] = {}
        try:
            with open(f"{root}/nrs/state") as file:
                for line in file:
                    queue, name, value = line.rstrip("\n").split("\t", 2)
                    self.facts[queue, name] = value
        except FileNotFoundError:
            self.facts = {(queue, "policy"): "fifo" for queue in QUEUES}

    def save(self) -> None:
        os.makedirs(f"{self.root}/nrs", exist_ok=True)
        _replace(f"{self.root}/nrs/state", "".join(f"{q}\t{n}\t{v}\n" for (q, n), v in self.facts.items()))
        for name in self.names():
            try:
                _replace(f"{self.root}/{IO}/{name}", self.text(name))
            except No:
                if os.path.exists(f"{self.root}/{IO}/{name}"):
                    os.unlink(f"{self.root}/{IO}/{name}")

    @staticmethod
    def names() -> list[str]:
        """As `list_param` has them."""
        tunables = [f"nrs_{policy}_{what}" for policy, starts in STARTS.items() for what in starts]
        return sorted(["nrs_policies", *tunables])

    def policy(self, queue: str) -> str:
        return self.facts[queue, "policy"].partition(" ")[0]

    def text(self, name: str) -> str:
        """What reading gives. Raises No."""
        if name == "nrs_policies":
            return "\n" + "".join(self._policies(queue) for queue in QUEUES)
        policy, what = name.removeprefix("nrs_").split("_", 1)
        on = [queue for queue in QUEUES if self.policy(queue) == policy]
        if policy == "delay":
            return "".join(
                f"{q}_delay_{what}:{self.facts[q, what]:<{3 if what == 'pct' else 5}}\n" for q in on
            )
        if "hp" not in on:  # the answer of the second queue is that of the file
            raise No(errno.ENODEV)
        if policy == "tbf":
            return "".join(f"{QUEUES[q]}:\n{self._rules(q) if q in on else ''}" for q in QUEUES)
        pad = 5 if what == "quantum" else 0
        return "".join(f"{queue}_{what}:{self.facts[queue, what]:<{pad}}\n" for queue in on)

    def _policies(self, queue: str) -> str:
        text = f"{QUEUES[queue]}:\n"
        for policy in POLICIES:
            started = policy in ("fifo", self.policy(queue))
            shown = self.facts[queue, "policy"] if policy == self.policy(queue) else policy
            text += f"  - name: {shown}\n    state: {'started' if started else 'stopped'}\n"
            text += f"    fallback: {'yes' if policy == 'fifo' else 'no'}\n"
            text += f"    queued: {0:<20}\n    active: {0:<20}\n\n"
        return text

    def _rules(self, queue: str) -> str:
        text = "CPT 0:\n"
        for rule in filter(None, self.facts[queue, "rule"].split("\v")):
            name, matches, rate = rule.split("\t")
            text += f"{name} {matches} {rate}, ref 0\n"
        return text

    def set(self, name: str, value: str) -> None:
        """Raises No."""
        if name == "nrs_policies":
            self._start(value)
            return
        policy, what = name.removeprefix("nrs_").split("_", 1)
        queues = list(QUEUES)
        if policy == "tbf":
            word = value.split(" ", maxsplit=1)[0]
            if word in QUEUES:
                queues, value = [word], value.partition(" ")[2]
        else:
            for queue in QUEUES:
                if f"{queue}_{what}:" in value:
                    queues, value = [queue], value.partition(":")[2]
        on = [queue for queue in queues if self.policy(queue) == policy]
        new = {queue: self._new(queue, what, value) for queue in on or queues}
        if not on:
            raise No(errno.ENODEV)
        for queue, each in new.items():
            self.facts[queue, what] = each

    def _start(self, value: str) -> None:
        name, *words = value.split(" ")
        queues = [words.pop(0)] if words and words[0] in QUEUES else list(QUEUES)
        if name not in POLICIES:
            raise No(errno.ENOENT)
        if words and (name != "tbf" or len(words[0]) >= 20 or {*words[0].split("+")} - {*TBF_KINDS}):
            raise No(errno.EINVAL)
        draining = self._words("draining")
        for queue in queues:
            shown = " ".join([name, *words])
            if self.facts[queue, "policy"] == shown:
                continue
            if name in draining:
                raise No(errno.EAGAIN)
            self.facts = {key: fact for key, fact in self.facts.items() if key[0] != queue}
            self.facts[queue, "policy"] = shown
            self.facts |= {(queue, what): start for what, start in STARTS.get(name, {}).items()}

    def _words(self, name: str) -> list[str]:
        try:
            with open(f"{self.root}/nrs/{name}") as file:
                return file.read().split()
        except FileNotFoundError:
            return []

    def _new(self, queue: str, what: str, value: str) -> str:
        if what == "quantum":
            if not value.isdecimal() or not 0 < int(value) < 65536:
                raise No(errno.EINVAL)
            return str(int(value))
        if what == "rule":
            nodemaps = frozenset({"default", *self._words("nodemaps")})
            return self._rule(self.facts.get((queue, what), ""), self.facts[queue, "policy"], value, nodemaps)
        for allowed in ALLOWED.get(what, ()):
            if value.startswith(allowed):
                return allowed
        raise No(errno.EINVAL)

    @staticmethod
    def _rule(old: str, policy: str, value: str, nodemaps: frozenset[str]) -> str:
        rules = {rule.split("\t")[0]: rule for rule in filter(None, old.split("\v"))}
        word, _, rest = value.partition(" ")
        name, _, rest = rest.partition(" ")
        rate = rest.rpartition("rate=")[2]
        if word not in ("start", "change", "stop") or not name.replace("_", "").isalnum():
            raise No(errno.EINVAL)
        if word != "stop" and not (rate.isdecimal() and 0 < int(rate) < 1_000_000):
            raise No(errno.EINVAL)
        if word != "start" and (name not in rules or name == "default"):
            raise No(errno.ENOENT if name not in rules else errno.EPERM)
        if word == "start":
            matches = rest[: rest.rfind("}") + 1]
            kinds = policy.partition(" ")[2].split("+") if " " in policy else TBF_KINDS
            for expression in matches.replace("}&", "},").split("},"):
                kind, _, listed = expression.rstrip("}").partition("={")
                words = listed.split()
                numbers = kind in ("uid", "gid", "projid")
                if kind not in kinds or not words or (numbers and not all(map(str.isdecimal, words))):
                    raise No(errno.EINVAL)
                if kind == "nodemap" and not nodemaps.issuperset(words):
                    raise No(errno.EINVAL)
            if name in rules:
                raise No(errno.EEXIST)
            rules = {name: f"{name}\t{matches}\t{rate}", **rules}
        elif word == "change":
            rules[name] = "\t".join([*rules[name].split("\t")[:2], rate])
        else:
            del rules[name]
        return "\v".join(rules.values())


def _pages(value: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number, unit = (value[:-1], units[value[-1:]]) if value[-1:] in units else (value, 0)
    if not number.isdecimal():
        raise No(errno.EINVAL)
    size = int(number) * unit if unit else int(number) * PAGE_BYTES
    if not 65536 <= size <= RPC_PAGES * PAGE_BYTES:
        raise No(errno.ERANGE)
    return size // PAGE_BYTES


def _number(value: str) -> int:
    if not value.isdecimal():
        raise No(errno.EINVAL)
    return int(value)


def tunable(path: str, value: str) -> str:
    """What a node's file has after this was written to it. Raises No."""
    device, name = path.split("/")[-2:]
    if name == "max_rpcs_in_flight":
        number = _number(value)
        if number == 0 or (number > 256 and "-osc-MDT" not in device):
            raise No(errno.ERANGE)
        return str(number)
    if name == "max_pages_per_rpc":
        return str(_pages(value))
    if name in ("max_dirty_mb", "max_read_ahead_mb"):
        number = _number(value)
        if number > MEMORY_MB:
            raise No(errno.ERANGE)
        return str(min(number, MEMORY_MB // 2))
    if name.startswith("hybrid_io_"):  # sysfs_memparse, HYBRID_IO_THRESHOLD_BYTES_MAX
        unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(value[-1:], 1)
        number = _number(value[:-1] if unit > 1 else value) * unit
        if number > 2 << 30:
            raise No(errno.ERANGE)
        return str(number)
    if name in ("degraded", "no_create", "hybrid_io"):
        return str(int(_flag(value)))
    if name == "max_create_count":
        number = _number(value)
        if number and not 32 <= number <= 20_000:  # osp_internal.h, OST_MIN_PRECREATE to OST_MAX_PRECREATE
            raise No(errno.ERANGE)
        return str(number)
    if name in ("enable_remote_dir", "enable_striped_dir", "enable_dir_migration"):
        return str(int(_flag(value)))
    if name == "enable_remote_dir_gid":
        if not value.removeprefix("-").isdecimal() or not -1 <= int(value) < 1 << 32:
            raise No(errno.EINVAL)
        return str(int(value))
    if name in ("qos_maxage", "qos_rr_index"):
        return str(_number(value))
    if name in ("qos_prio_free", "qos_threshold_rr"):
        number = _number(value.removesuffix("%"))
        if number > 100:
            raise No(errno.EINVAL)
        return f"{number}%"
    raise No(errno.EACCES)


def _flag(value: str) -> bool:
    if value[:1] not in ("0", "1", "y", "n", "Y", "N"):  # kstrtobool
        raise No(errno.EINVAL)
    return value[0] in "1yY"


def find(root: str, pattern: str) -> list[str]:
    """Files below `root` that a parameter's name, with `*` or without, stands for."""
    files = []
    for place in PLACES:
        paths = [place]
        for part in pattern.split("/"):
            here = [(path, _entries(f"{root}/{path}")) for path in paths]
            paths = [f"{path}/{name}" for path, names in here for name in names if fnmatchcase(name, part)]
        files += [path for path in paths if os.path.isfile(f"{root}/{path}")]
    io = IO.partition("lustre/")[2] + "/"
    if pattern.startswith(io) and os.path.isdir(f"{root}/{IO}"):
        hidden = [f"{IO}/{name}" for name in Nrs.names() if fnmatchcase(name, pattern.removeprefix(io))]
        files += [path for path in hidden if path not in files]
    return files


def _entries(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def _shown(path: str) -> str:
    return path.partition("/lustre/")[2].replace("/", ".")


def get(root: str, words: list[str]) -> int:
    status = 0
    for word in words:
        pattern = word.replace(".", "/")
        paths = find(root, pattern)
        status = 0 if paths else errno.ENOENT
        if not paths:
            say(f"error: get_param: param_path '{pattern}': {os.strerror(errno.ENOENT)}")
        for path in paths:
            try:
                name = path.rpartition("/")[2]
                text = Nrs(root).text(name) if name in Nrs.names() else _read(f"{root}/{path}")
            except No as error:
                status = error.args[0]
                say(f"error: read_param: '/{path}': {os.strerror(status)}")
                continue
            lines = text.rstrip("\n").count("\n")
            print(
                f"{_shown(path)}={chr(10) if lines or (name.startswith('nrs_') and text) else ''}{text}",
                end="",
            )
            print("" if text.endswith("\n") else "\n", end="", flush=True)
    return status


def put(root: str, words: list[str]) -> int:
    status = 0
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            say(f"error: set_param: setting {word}: {os.strerror(errno.EINVAL)}")
            return errno.EINVAL
        pattern = name.replace(".", "/")
        paths = find(root, pattern)
        status = 0 if paths else errno.ENOENT
        if not paths:
            say(f"error: set_param: param_path '{pattern}': {os.strerror(errno.ENOENT)}")
        for path in paths:
            try:
                _set(root, path, value)
                print(f"{_shown(path)}={value}", flush=True)
            except No as error:
                status = error.args[0]
                say(f"error: set_param: setting /{path}={value}: {os.strerror(status)}")
        if status:
            say(f"error: set_param: setting '{pattern}'='{value}': {os.strerror(status)}")
    return status


def excluded(patterns: list[str], value: str, prefixes: bool) -> list[str]:
    """`qos_exclude_patterns` after this was written (lproc_lmv.c): a list between colons, or `+` and `-` with one each.
    A prefix is also the pattern of all that has a dot behind it. Raises No.
    """
    kept, mode = list(patterns), ""
    for part in filter(None, value.split(":")):
        mode, name = (part[0], part[1:]) if part[0] in "+-" else (mode, part)
        if len(name) > 255:
            raise No(errno.ERANGE)
        if not mode:
            kept, mode = [], "+"
        names = [name, f"{name}.*"] if prefixes else [name]
        kept = [each for each in kept if each not in names] + (names if mode == "+" else [])
    return kept


def _exclude(root: str, path: str, value: str) -> None:
    directory, _, name = path.rpartition("/")
    patterns = _read(f"{root}/{directory}/qos_exclude_patterns").split("\n")
    kept = excluded([each for each in patterns if each], value, name == "qos_exclude_prefixes")
    _replace(f"{root}/{directory}/qos_exclude_patterns", "".join(f"{each}\n" for each in kept))
    plain = [each for each in kept if not each.endswith(".*")]
    _replace(f"{root}/{directory}/qos_exclude_prefixes", "".join(f"{each}\n" for each in plain))


def _set(root: str, path: str, value: str) -> None:
    name = path.rpartition("/")[2]
    if name in ("qos_exclude_patterns", "qos_exclude_prefixes"):
        _exclude(root, path, value)
        return
    if name not in Nrs.names():
        _replace(f"{root}/{path}", tunable(path, value) + "\n")
        if name in ("max_rpcs_in_flight", "max_pages_per_rpc"):
            _adjust_max_dirty(f"{root}/{path.rpartition('/')[0]}")
        return
    nrs = Nrs(root)
    nrs.set(name, value)
    nrs.save()


def _adjust_max_dirty(device: str) -> None:
    """Up to what is in flight at most, and to an eighth of the memory (obd.h, client_adjust_max_dirty)."""
    try:
        rpcs, pages, dirty_mb = (
            int(_read(f"{device}/{name}"))
            for name in ("max_rpcs_in_flight", "max_pages_per_rpc", "max_dirty_mb")
        )
    except FileNotFoundError:
        return
    raised = min(max(dirty_mb, -(-rpcs * pages // 256)), MAX_DIRTY_MB)
    if raised != dirty_mb:
        _replace(f"{device}/max_dirty_mb", f"{raised}\n")


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()


def _replace(path: str, text: str) -> None:
    with open(f"{path}.new", "w") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(words: list[str]) -> int:
    root, command, *words = words
    if command.startswith("pool_"):  # those of the MGS's node: lctl_pools.py
        if command == "pool_list":
            say(f"pool_list: {os.strerror(errno.ENOENT)}")
            return errno.ENOENT
        say("No device found for name MGS: Invalid argument\nThis command must be run on the MGS.")
        return errno.ENODEV
    if command not in ("get_param", "set_param") or any(word.startswith("-") for word in words):
        say("usage: get_param NAME …, set_param NAME=VALUE …")
        return 1
    if not os.path.isdir(root):
        return errno.ENOENT
    lock = os.open(os.path.join(root, ".lctl"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        return get(root, words) if command == "get_param" else put(root, words)
    finally:
        os.close(lock)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it, and says nothing
    sys.exit(main(sys.argv[1:]))
