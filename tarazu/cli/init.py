"""Set a node up: its settings and keys are made, its way to mdsd is tried, and what is still missing is said.

    tarazu init                              asks what the node is; the answer that fits is proposed
    tarazu init --role oss --mdsd mds1       asks nothing
    tarazu init --role mdsd --dry-run        only says what would be done

Settings go to conf.d/init.toml beside the configuration, and only those that are not in force already. Files and keys
that are there stay: call it again whenever something has changed. Nothing is started: the last line is the command that
does. Exit status: 0 that command is all that is left, 1 something is missing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tarazu import config, durable
from tarazu.cli.output import print_json, say
from tarazu.config import files
from tarazu.doctor import key_files, node, peers, units
from tarazu.errors import BadInput
from tarazu.wire import keys
from tarazu.wire.security import is_local

ROLES = {
    "oss": "an OSS: tarazu-ossd reports its statistics",
    "mdsd": "an MDS, or another node where tarazu-mdsd runs",
    "launch": "a client where jobs are launched: tarazu-clientd runs there",
}
FILE = "init.toml"
HOST = re.compile(r"[\w.-]+|\[[0-9a-fA-F:.]+\]", re.ASCII)
_PORT = re.compile(r"tcp://(?P<host>.+):(?P<port>\d+)")


class Missing(msgspec.Struct, frozen=True):
    what: str
    mend: str


class Outcome(msgspec.Struct):
    """What was done, or with --dry-run would be."""

    roles: list[str]
    why: str
    settings: str = ""
    """The file that was written; empty: all is in force already."""
    text: str = ""
    """What is in it."""
    keys: list[str] = []
    """That were made."""
    directory: str = ""
    """For keys from elsewhere, that was made."""
    connection: str = ""
    missing: list[Missing] = []
    next: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--role", action="append", default=[], choices=tuple(ROLES), help="what the node is; may be repeated"
    )
    parser.add_argument("--mdsd", metavar="HOST", default="", help="the node where tarazu-mdsd runs")
    parser.add_argument("--dry-run", action="store_true", help="change nothing, say what would be done")
    parser.add_argument("--force", action="store_true", help=f"replace a {FILE} that says something else")
    parser.add_argument("--json", action="store_true", help="as JSON; asks nothing")


def execute(options: argparse.Namespace) -> int:
    examined = config.examine(options.config)
    if examined.problems:
        raise examined.problems[0]
    asks = sys.stdin.isatty() and not options.json
    outcome = _roles(options, examined.settings, asks)
    host = _host(options, outcome.roles, examined.settings, asks)
    _settings(options, outcome, examined, host)
    settings = examined.settings
    if outcome.text:
        settings = config.override(settings, "mdsd", **_addresses(settings, host))
    here = node.Node(settings, frozenset(outcome.roles), root=Path(config.root()))
    if "mdsd" in outcome.roles:
        _make_keys(options.dry_run, outcome, here)
    absent = list(_missing_keys(outcome, here, host))
    if absent and not Path(here.settings.keys.directory).exists() and not outcome.keys:
        _make_directory(options.dry_run, outcome, here)
    outcome.missing += [*absent, *_missing_units(outcome.roles, here)]
    would = options.dry_run and bool(outcome.text or outcome.keys or outcome.directory)
    if not would and not outcome.missing:
        outcome.missing += _connection(outcome, here)
    _say_next(would, outcome)
    if options.json:
        print_json(outcome)
    else:
        _print(outcome, options.dry_run)
    return 1 if outcome.missing else 0


def _roles(options: argparse.Namespace, settings: config.Settings, asks: bool) -> Outcome:
    if options.role:
        return Outcome(list(dict.fromkeys(options.role)), "--role")
    seen = node.roles_of(Path(config.root()), Path("/"), settings)
    likely = {"oss": {"oss"}, "mdsd": {"mds", "mdsd"}, "launch": {"client", "launch"}}
    found = [role for role, names in likely.items() if names & seen]
    why = f"Lustre and tarazu show here: {', '.join(sorted(seen)) or 'nothing'}"
    if asks:
        for role, text in ROLES.items():
            say(f"  {role:<8} {text}")
        answer = _ask(f"What is this node ({why})? [{' '.join(found)}] ").replace(",", " ").split()
        for word in answer:
            if word not in ROLES:
                raise BadInput("what the node is", f"one or several of {', '.join(ROLES)}", word)
        found, why = (answer, "answered") if answer else (found, why)
    if not found:
        raise BadInput("--role", f"one or several of {', '.join(ROLES)}, for {why}{_nobody(asks)}")
    return Outcome(found, why)


def _nobody(asks: bool) -> str:
    return "" if asks else ", and standard input is no terminal, at which to ask"


def _ask(question: str) -> str:
    try:
        return input(question)
    except EOFError:
        return ""


def _host(options: argparse.Namespace, roles: list[str], settings: config.Settings, asks: bool) -> str:
    """Of mdsd."""
    first = settings.requests()[0]
    known = _PORT.fullmatch(first)
    likely = known["host"] if known and not is_local(first) else ""
    if not likely and "mdsd" in roles:
        likely = os.uname().nodename
    host: str = options.mdsd
    if not host and asks:
        host = _ask(f"On which node does tarazu-mdsd run? [{likely}] ").strip()
    host = host or likely
    expected = "the name of the node where tarazu-mdsd runs"
    if not host:
        raise BadInput("--mdsd", f"{expected}, for no setting names one{_nobody(asks)}")
    if not HOST.fullmatch(host):
        raise BadInput("--mdsd", expected, host)
    return host


def _addresses(settings: config.Settings, host: str) -> dict[str, str]:
    """The settings that say where mdsd is, with the ports that are in force."""
    wanted = {}
    for name in ("statistics", "requests"):
        match = _PORT.fullmatch(getattr(settings.mdsd, name))
        if match is None:
            raise BadInput(f"mdsd.{name}", "tcp://HOST:PORT", getattr(settings.mdsd, name))
        wanted[name] = f"tcp://{host}:{match['port']}"
    return wanted


def _settings(options: argparse.Namespace, outcome: Outcome, examined: config.Examined, host: str) -> None:
    first = Path(options.config or os.environ.get("TARAZU_CONFIG") or config.DEFAULT_FILE)
    path = first.parent / files.MORE / FILE
    wanted = _addresses(examined.settings, host)
    if all(getattr(examined.settings.mdsd, name) == value for name, value in wanted.items()):
        return
    if first.name != config.DEFAULT_FILE.name:
        raise BadInput(str(first), f"a file named {config.DEFAULT_FILE.name}, which has a conf.d", first.name)
    for name, value in wanted.items():
        place = examined.origins.get(f"mdsd.{name}", "")
        if place and not place.startswith(f"{path}:") and getattr(examined.settings.mdsd, name) != value:
            found = getattr(examined.settings.mdsd, name)
            raise BadInput(place, f"{value}, as --mdsd says, or --mdsd as it stands here", found)
    outcome.settings = str(path)
    outcome.text = "[mdsd]\n" + "".join(f'{name} = "{value}"\n' for name, value in wanted.items())
    there = path.stat() if path.exists() else None
    if there and not options.force:
        raise BadInput(str(path), "what --mdsd says, or --force to replace it", path.read_text().strip())
    if options.dry_run:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        durable.replace(path, outcome.text.encode(), mode=stat.S_IMODE(there.st_mode) if there else 0o644)
        if there:
            os.chown(path, there.st_uid, there.st_gid)
    except OSError as error:
        raise BadInput(str(path), "a place that can be written to", error.strerror) from None


def _make_keys(dry_run: bool, outcome: Outcome, here: node.Node) -> None:
    """All three pairs, where there is none: what was revoked is not made anew."""
    directory = Path(here.settings.keys.directory)
    if here.settings.keys.insecure or any(directory.glob("*.key")):
        return
    made = [directory / f"{role}.{end}" for role in keys.ROLES for end in ("key", "pub")]
    outcome.keys = [str(path) for path in made]
    if dry_run:
        return
    for role in keys.ROLES:
        keys.create(directory, role)
    if here.is_root and here.daemon_ids:
        for path in (directory, *made):
            os.chown(path, *here.daemon_ids)


def _make_directory(dry_run: bool, outcome: Outcome, here: node.Node) -> None:
    """Into which keys are copied."""
    outcome.directory = here.settings.keys.directory
    if dry_run:
        return
    path = Path(outcome.directory)
    try:
        path.mkdir(parents=True)
        if here.is_root and here.daemon_ids:
            os.chown(path, *here.daemon_ids)
    except OSError as error:
        raise BadInput(str(path), "a directory that can be made, for keys", error.strerror) from None


def _missing_keys(outcome: Outcome, here: node.Node, host: str) -> Iterator[Missing]:
    directory = Path(here.settings.keys.directory)
    if here.settings.keys.insecure or (is_local(here.settings.requests()[0]) and not directory.exists()):
        return
    own = os.uname().nodename.partition(".")[0]
    for role in outcome.roles:
        wanted = () if role == "mdsd" else key_files.NEEDED[role]
        absent = [
            name
            for name in wanted
            if not (directory / name).exists() and str(directory / name) not in outcome.keys
        ]
        if not absent:
            continue
        make = ""
        source = {"client.key": f"client-{own}.key"}
        if "client.key" in absent:
            make = f"on {host}: tarazu config keys create client --name {own} --uids 1000-60000; here: "
        copies = "; ".join(
            f"scp {host}:{directory}/{source.get(name, name)} {directory}/{name}" for name in absent
        )
        yield Missing(
            f"{' and '.join(absent)} in {directory}",
            f"{make}{copies}; chown -R {node.DAEMON_USER}: {directory}",
        )
    for finding in key_files.look(here) if directory.exists() else ():
        if finding.verdict == "fail" and not finding.found.startswith("not in "):
            yield Missing(f"{finding.check}: {finding.found}", finding.mend)


def _missing_units(roles: list[str], here: node.Node) -> Iterator[Missing]:
    for role in roles:
        if here.has_systemd and not units.unit_file(here, node.BY_UNIT[role]):
            package = "tarazu-oss" if role == "oss" else "tarazu"
            yield Missing(
                f"{node.BY_UNIT[role]}.service",
                f"install the package {package} (with pip: operator-guide.md, Install)",
            )


def _connection(outcome: Outcome, here: node.Node) -> Iterator[Missing]:
    """Tried as the daemon will; on mdsd's own node once that runs."""
    if here.roles == {"mdsd"} or ("mdsd" in here.roles and not _runs(node.BY_UNIT["mdsd"])):
        return
    from tarazu.daemons.asking import status_of

    settings = here.settings
    tried = node.Node(settings, here.roles, root=here.root, status=lambda: status_of(settings))
    findings = [finding for finding in peers.look(tried) if finding.check.startswith("mdsd")]
    for finding in findings:
        if finding.verdict == "fail":
            yield Missing(f"{finding.check}: {finding.found}", finding.mend)
    outcome.connection = "; ".join(f"{f.check}: {f.found}" for f in findings if f.verdict == "ok")


def _say_next(would: bool, outcome: Outcome) -> None:
    if would:
        outcome.next = "the same without --dry-run"
    elif outcome.missing:
        outcome.next = "what is missing, then `tarazu init` again"
    else:
        names = [node.BY_UNIT[role] for role in outcome.roles]
        idle = [unit for unit in names if not _runs(unit)]
        outcome.next = f"systemctl enable --now {' '.join(idle)}" if idle else "tarazu doctor"


def _runs(unit: str) -> bool:
    if not shutil.which("systemctl"):
        return False
    command = ["systemctl", "is-active", "--quiet", unit]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0


def _print(outcome: Outcome, dry_run: bool) -> None:
    would = "would be " if dry_run else ""
    say(f"this node: {', '.join(outcome.roles)} ({outcome.why})")
    if outcome.text:
        say(f"settings:  {would}written to {outcome.settings}")
        for line in outcome.text.splitlines():
            say(f"             {line}")
    else:
        say("settings:  in force already")
    if outcome.keys:
        names = ", ".join(Path(path).name for path in outcome.keys)
        say(f"keys:      {would}made: {names} in {Path(outcome.keys[0]).parent}")
    if outcome.directory:
        say(f"keys:      their directory {outcome.directory} {'would be' if dry_run else 'was'} made")
    if outcome.connection:
        say(f"mdsd:      {outcome.connection}")
    for each in outcome.missing:
        say(f"missing:   {each.what}")
        say(f"             {each.mend}")
    say(f"next:      {outcome.next}")
