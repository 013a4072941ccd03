"""Create, list and revoke the CURVE keys with which the daemons know one another:

    tarazu config keys create                     all three pairs into keys.directory of the configuration
    tarazu config keys create --directory DIR oss
    tarazu config keys create client --name login1 --uids 1000-1999,2500
                                           a further key, which may ask for these users only
    tarazu config keys create oss --name rack2 --targets 'scratch-OST00*'
    tarazu config keys list                       who is admitted, and for whom
    tarazu config keys revoke client-login1       shut out within seconds, without a restart

mdsd needs server.key and all public keys (.pub) with their lists (.uids, .targets); an OSS oss.key and server.pub; a
client client.key and server.pub. A further key's secret, say client-login1.key, goes to its node as client.key.
Secret keys (.key) must be readable by their daemon alone. An existing key is never replaced without --force.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import msgspec

from tarazu import config
from tarazu.cli.output import common_options, print_json, print_table
from tarazu.errors import WireError
from tarazu.wire import admission, keys

LISTS = {"uids": "client", "targets": "oss"}
"""End of a list's name → the role of the keys that have one."""


class _Row(msgspec.Struct):
    """One key as `list` shows it; an empty list is nobody, None everybody."""

    name: str
    role: str
    public: str = ""
    uids: list[str] | None = None
    targets: list[str] | None = None
    problem: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(dest="action", required=True, metavar="create, list or revoke")
    create = sub.add_parser("create", help="make key pairs", parents=[common_options()])
    create.add_argument("role", nargs="*", choices=[*keys.ROLES, []], help="default: all three")
    create.add_argument("--name", default="", help="a further key of one role, <role>-NAME")
    create.add_argument("--uids", help="the users that a client's key may ask for: 1000-1999,2500")
    create.add_argument("--targets", help="the targets that an OSS's key may report: 'scratch-OST00*'")
    create.add_argument(
        "--force", action="store_true", help="replace existing keys: every peer needs the new ones"
    )
    listing = sub.add_parser("list", help="who is admitted, and for whom", parents=[common_options()])
    revoke = sub.add_parser("revoke", help="remove a key and its lists", parents=[common_options()])
    revoke.add_argument("name", help="as `tarazu config keys list` prints it: client-login1")
    for each in (create, listing, revoke):
        each.add_argument("--directory", help="of the keys (default: keys.directory)")
        each.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    directory = Path(options.directory or config.load(options.config).keys.directory)
    if options.action == "list":
        return _list(directory, options.json)
    paths = _create(directory, options) if options.action == "create" else _revoke(directory, options.name)
    if options.json:
        print_json([str(path) for path in paths])
    else:
        for path in paths:
            print(path)
    return 0


def _create(directory: Path, options: argparse.Namespace) -> list[Path]:
    """Raises WireError."""
    roles = options.role or keys.ROLES
    if options.name and len(roles) != 1:
        raise WireError("--name", "one role with it", " ".join(roles))
    lists = {end: value for end in LISTS if (value := getattr(options, end)) is not None}
    for end, value in lists.items():
        if list(roles) != [LISTS[end]]:
            raise WireError(f"--{end}", f"role {LISTS[end]} with it", " ".join(roles))
        if end == "uids":
            for word in filter(None, re.split(r"[\s,]+", value)):
                admission.uid_range(f"--{end}", word)
    stem = f"{roles[0]}-{options.name}" if options.name else roles[0]
    made: list[Path] = []
    try:
        # The lists first: a key must not be admitted for all users until its list is there.
        for end, value in lists.items():
            made.append(keys.write_list(directory, f"{stem}.{end}", value, options.force))
        for role in roles:
            made += keys.create(directory, role, options.force, name=options.name)
    except WireError:
        if not options.force:
            for path in made:
                path.unlink(missing_ok=True)
        raise
    return made


def _list(directory: Path, as_json: bool) -> int:
    """One line for each key, a malformed one with what is wrong; exit status 1 then."""
    if not directory.is_dir():
        raise WireError(str(directory), "a directory of keys (`tarazu config keys create`)", "none")
    rows = [_row(directory, path.stem) for path in sorted(directory.glob("*.pub"))]
    rows = [row for row in rows if row.role in keys.ROLES]
    if as_json:
        print_json(msgspec.to_builtins(rows))
    else:
        print_table(
            ("key", "may ask for", "may report", "public key"),
            [(r.name, _may(r, "uids"), _may(r, "targets"), r.problem or r.public) for r in rows],
            left=4,
        )
    return 1 if any(row.problem for row in rows) else 0


def _row(directory: Path, stem: str) -> _Row:
    role = stem.partition("-")[0]
    try:
        one = admission.admission(directory, stem, role)
    except WireError as error:
        return _Row(stem, role, problem=str(error))
    uids = None if one.uids is None else [f"{a}-{b}" if a < b else str(a) for a, b in one.uids]
    targets = None if one.targets is None else list(one.targets)
    return _Row(stem, role, one.public.decode(), uids, targets)


def _may(row: _Row, end: str) -> str:
    if row.role != LISTS[end] or row.problem:
        return "-"
    allowed: list[str] | None = getattr(row, end)
    return "all" if allowed is None else ", ".join(allowed) or "none"


def _revoke(directory: Path, name: str) -> list[Path]:
    """Raises WireError for a name that no key has."""
    if not keys.NAME.fullmatch(name) or not (directory / f"{name}.pub").exists():
        raise WireError(str(directory), "a key that `tarazu config keys list` shows", name)
    gone = []
    # The key first: without its list it would speak for all users.
    for end in ("pub", *LISTS, "key"):
        path = directory / f"{name}.{end}"
        if path.exists():
            try:
                path.unlink()
            except OSError as error:
                raise WireError(str(path), "a key that can be removed", error.strerror) from None
            gone.append(path)
    return gone
