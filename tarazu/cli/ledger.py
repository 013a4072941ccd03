"""Look at mdsd's ledger on disk, without mdsd: what it promised, and whether all of it can be read.

    tarazu doctor ledger show                      what is promised, by file system, user and OST
    tarazu doctor ledger show --promises DIR       each allocation, of the ledger in DIR
    tarazu doctor ledger check DIR                 read all of it: exit status 1 when a place is damaged

DIR is mdsd's unless given. Nothing is changed, and a running mdsd is not disturbed: what it writes just now may
be missing. Times are as of the last record.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from tarazu import config
from tarazu.allocate.ledger import GONE, Promise
from tarazu.cli.output import common_options, print_json, print_table
from tarazu.errors import StoreError
from tarazu.store.journal import Content
from tarazu.units import counted, human_bytes


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(dest="action", required=True, metavar="show|check")
    show = sub.add_parser("show", help="what is promised", parents=[common_options()])
    show.add_argument("--promises", action="store_true", help="each allocation too")
    check = sub.add_parser("check", help="read all of it", parents=[common_options()])
    for one in (show, check):
        one.add_argument("directory", nargs="?", metavar="DIR", help="of the ledger (default: mdsd's)")
        one.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    directory = options.directory or config.load(getattr(options, "config", None)).state.mdsd
    ledger = read(Path(directory))
    if options.action == "show":
        if options.json:
            print_json(ledger)
        else:
            _print(ledger, options.promises)
        return 0
    if options.json:
        print_json({name: ledger[name] for name in ("directory", "records", "damages", "cut_off", "digest")})
    else:
        for damage in ledger["damages"]:
            print(damage)
        if ledger["cut_off"]:
            print(f"{ledger['cut_off']}: the last write is incomplete, or still going on")
        verdict = "can be read as a whole" if not ledger["damages"] else "is damaged"
        print(
            f"{directory}: {counted(ledger['records'], 'record')}: the ledger {verdict}; digest {ledger['digest'][:16]}"
        )
    return 1 if ledger["damages"] else 0


def read(directory: Path) -> dict[str, Any]:
    """All of a ledger in plain values. Raises StoreError for a directory that holds none."""
    from tarazu.daemons.mdsd.book import Book
    from tarazu.daemons.mdsd.ledger_clock import LedgerClock

    book = Book(LedgerClock())
    try:
        content = Content(directory)
        book.replay(content)
    except OSError as error:
        raise StoreError(str(directory), "a ledger's directory", error.strerror) from None
    if not (content.found.logs or content.found.snapshots):
        raise StoreError(str(directory), "a ledger: files log-… and snapshot-…", "none")
    ledger = book.ledger
    promises = [_shown(id, promise, book.latest_s) for id, promise in ledger.promises()]
    names = sorted({promise["fs"] for promise in promises})
    users: Counter[tuple[str, int]] = Counter()
    for promise in promises:
        users[promise["fs"], promise["uid"]] += 1
    return {
        "directory": str(directory),
        "records": book.sequence,
        "digest": book.digest(),
        "damages": [str(damage) for damage in book.damages],
        "cut_off": str(content.torn) if content.torn else "",
        "kept_replies": len(book.answered),
        "promised_stripes": ledger.numbers()[1],
        "file_systems": {fs: sum(ledger.promised(fs).values()) for fs in names},
        "users": [
            {"fs": fs, "uid": uid, "promises": number, "bytes": ledger.held_bytes(uid, fs)}
            for (fs, uid), number in sorted(users.items())
        ],
        "osts": [
            {"fs": fs, "ost": ost, "bytes": size, "closed_bytes": ledger.written(fs).get(ost, 0)}
            for fs in names
            for ost, size in sorted(ledger.promised(fs).items())
        ],
        "promises": promises,
    }


def _shown(id: str, promise: Promise, now: float) -> dict[str, Any]:
    return {
        "id": id,
        "fs": promise.fs_name,
        "uid": promise.uid,
        "files": sum(at != GONE for at in promise.release_s),
        "bytes": promise.held_bytes,
        "expires_in_s": round(promise.expires_at_s - now, 3),
        "dead": promise.dead,
    }


def _print(found: dict[str, Any], each: bool) -> None:
    print(
        f"{found['directory']}: {counted(found['records'], 'record')}, "
        f"{counted(found['kept_replies'], 'kept reply')}"
    )
    for damage in found["damages"]:
        print(f"damaged: {damage}")
    for fs, size in found["file_systems"].items():
        print(f"\n{fs}: {human_bytes(size)} promised")
        users = [user for user in found["users"] if user["fs"] == fs]
        print_table(
            ("user", "promises", "bytes"), [(u["uid"], u["promises"], human_bytes(u["bytes"])) for u in users]
        )
        osts = [ost for ost in found["osts"] if ost["fs"] == fs]
        print()
        print_table(
            ("OST", "promised", "of it closed"),
            [(o["ost"], human_bytes(o["bytes"]), human_bytes(o["closed_bytes"])) for o in osts],
        )
    if each:
        print()
        print_table(
            ("id", "fs", "user", "files", "bytes", "expires in", ""),
            [
                (
                    p["id"],
                    p["fs"],
                    p["uid"],
                    p["files"],
                    human_bytes(p["bytes"]),
                    f"{p['expires_in_s']:.0f} s",
                    "dead" if p["dead"] else "",
                )
                for p in found["promises"]
            ],
            left=2,
        )
