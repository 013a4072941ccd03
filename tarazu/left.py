"""Why files are left to Lustre: every reason there is, in one word and in one sentence.

The leader decides at the end of a step (`tarazu.run.not_placed`), of what came of each create (an outcome,
`trace.records.OUTCOMES`), of what clientd and mdsd answered (the status of a plan), and of what a plan says of one file
(a text, which begins with a key of TEXTS). The reason stands in the run and in the job's line, where all others read
it. docs/errors.md lists the words.
"""

from __future__ import annotations

import msgspec

OBSERVING = "observing"
ADVISING = "advising"
DISABLED = "disabled"
EXCLUDED = "excluded"
NOT_LUSTRE = "not Lustre"
NO_FORECAST = "no forecast"
NOT_EXPECTED = "not expected"
TOO_LATE = "too late"
TOO_SMALL = "too small"
OWN_LAYOUT = "own layout"
NO_GAIN = "no gain"
CONTROL = "control run"
NOT_FASTER = "not faster"
NO_ROOM = "no room"
IMPOSSIBLE = "impossible"
TOO_MANY = "too many"
SILENT = "daemon silent"
BUSY = "daemon busy"
NOT_ALLOWED = "not allowed"
UNKNOWN = "file system unknown"
REFUSED = "refused"
OVERTAKEN = "overtaken"
PARTLY = "partly"
SETTINGS = "wrong settings"
FORECAST_FAILED = "forecast failed"
NOT_SEEN = "not seen"
UNUSABLE = "plan unusable"

REASONS = {
    OBSERVING: ("run.mode is observe: files are recorded, not placed", "set run.mode to place"),
    ADVISING: (
        "run.mode is advise: the plan is computed and stored, not applied",
        "set run.mode to place",
    ),
    DISABLED: (
        "tarazu is switched off, by the site, the job's owner or TARAZU_DISABLE",
        "`tarazu enable`, `tarazu enable --site` as root, or unset TARAZU_DISABLE",
    ),
    EXCLUDED: (
        "a setting (run.exclude…, run.include, run.only_…) excludes this user, program or file",
        "ask the site; `tarazu config` shows the settings",
    ),
    NOT_LUSTRE: (
        "no Lustre file system is mounted on this node",
        "start the job where one is mounted; `tarazu doctor` says what it sees",
    ),
    NO_FORECAST: (
        "no earlier run of the application tells which files come, or the run wrote to a file system that its "
        "last runs did not use",
        "run it again: the first runs are recorded; `tarazu history predict APP`",
    ),
    NOT_EXPECTED: (
        "the forecast does not name these files",
        "`tarazu history predict APP --explain`",
    ),
    TOO_LATE: ("the files were created before their plan came", "raise run.wait_s"),
    TOO_SMALL: (
        "the files are smaller than layout.min_size, or fit on the MDT (DoM)",
        "nothing: such files do not load an OST",
    ),
    OWN_LAYOUT: (
        "the directory's default layout, or how the program opens the file (its own layout, its flags, a mode "
        "without write permission), rules out another layout",
        "`tarazu job explain FILE`; `lfs getstripe -d` of the directory; layout.foreign_defaults",
    ),
    NO_GAIN: (
        "Lustre's own allocator does as well, by allocate.least_gain",
        "nothing: OSTs are even without tarazu, or the files are small",
    ),
    CONTROL: (
        "the run is one of the few that show how fast the application is without tarazu (allocate.control)",
        "nothing: the next runs are placed; `tarazu history report` compares both",
    ),
    NOT_FASTER: (
        "placed runs of this application were not faster than those that were left to Lustre, by allocate.least_gain",
        "nothing: a run is placed now and then, and all are once it gains; `tarazu history report` has the figures",
    ),
    NO_ROOM: (
        "too few OSTs are usable or have room for the files now",
        "`tarazu top`: full, sick and excluded OSTs; mdsd.user_share; the next plan is asked for by itself",
    ),
    IMPOSSIBLE: (
        "the file system or the pool has too few OSTs, or too small ones, for the layout",
        "`tarazu job explain FILE`; the stripe count, the pool",
    ),
    TOO_MANY: (
        "one plan can hold no more stripes or layouts",
        "fewer stripes per file (layout.stripe_count)",
    ),
    SILENT: (
        "clientd or mdsd did not answer, or failed",
        "`tarazu status`; `systemctl status tarazu-clientd`, on mdsd's node tarazu-mdsd",
    ),
    BUSY: (
        "mdsd declined: it had too much to do, or the user asks too often",
        "`tarazu status`; the log of tarazu-mdsd says which",
    ),
    NOT_ALLOWED: (
        "mdsd does not take this node's key, or not for this user",
        "`tarazu doctor` here and on mdsd's node; there the key's files `client-NAME.pub` and `.uids`, keys.uids",
    ),
    UNKNOWN: (
        "no OSS reports this file system to mdsd",
        "`tarazu status`; start tarazu-ossd on the OSSs",
    ),
    REFUSED: (
        "Lustre or liblustreapi refused the layout; the files have the default one",
        "`tarazu history export APP` has each file's error number, in the column errno",
    ),
    OVERTAKEN: (
        "another process had given the files a layout first, or they existed",
        "nothing, or remove old files before the run",
    ),
    PARTLY: (
        "the files are placed, but Lustre chose the OSTs of their later components",
        "nothing; layout.lists says which components are placed",
    ),
    SETTINGS: ("the settings cannot be read", "`tarazu config check`"),
    FORECAST_FAILED: (
        "the forecast failed, or took more than its time or memory",
        "`tarazu history predict APP`; the log of tarazu-clientd",
    ),
    UNUSABLE: (
        "a plan could not be checked, or there was no place for its map",
        "`tarazu.log` beside `jobs.log` says why",
    ),
    NOT_SEEN: (
        "files were planned, and the placement library saw none of them",
        "`tarazu job check-app PROGRAM`: static programs do not load it; or they were made elsewhere",
    ),
}
"""Word → (one sentence without a full stop, what to do)."""

AS_GOOD = "Lustre's own allocator does as well"
A_CONTROL = "left as a control run, to measure what placing gains; so far "
PLACED_NOT_FASTER = "placed runs were not faster: "
"""Both before the figures."""
GAINS_NOTHING = frozenset({AS_GOOD})
LEFT_TO_LUSTRE = "left to Lustre"
"""Status of a plan of which nothing is placed, and nothing is wrong."""
MIRRORED = "a mirrored default layout"
ERASURE_CODED = "an erasure-coded default layout"
COMPRESSED = "a default layout with compression"
UNKNOWN_KIND = "a default layout of an unknown kind"
NAMES_OSTS = "a default layout that names its OSTs (lfs setstripe -i or -o)"
"""Of directories below which nothing is placed."""
OWN_DEFAULT = "a default layout of the directory's own (layout.foreign_defaults)"
NO_OSTS = "mdsd gave it no OSTs"
MORE_THAN_A_PLAN = "more stripes or layouts than one plan may have"
SMALLER = "smaller than layout.min_size"
ON_MDT = "all of it lies on the MDT (DoM)"
NO_USABLE_OST = "no usable OST"
MORE_STRIPES = "the default's stripes, all files together, are more than a plan holds; fewer balance worse"
LIBLUSTREAPI = "liblustreapi: "
ITS_OST = "its OST "
"""Before the index of one that it was planned on, and what has become of that."""
FAILED_FORECAST = f"{FORECAST_FAILED}: "
"""Before what clientd says of one that failed."""

MAY_NOT_ASK = "expected a uid that the key "
"""Before the name of this node's key, which mdsd lets ask for others."""
NO_ID_OF_ITS_OWN = "expected an id of this request's own"
KEY_REFUSED = "refused key: "
"""Before the address of an mdsd with which there is no connection for that."""

TEXTS = {
    AS_GOOD: NO_GAIN,
    A_CONTROL: CONTROL,
    PLACED_NOT_FASTER: NOT_FASTER,
    MIRRORED: OWN_LAYOUT,
    ERASURE_CODED: OWN_LAYOUT,
    COMPRESSED: OWN_LAYOUT,
    UNKNOWN_KIND: OWN_LAYOUT,
    NAMES_OSTS: OWN_LAYOUT,
    OWN_DEFAULT: OWN_LAYOUT,
    NO_OSTS: NO_ROOM,
    MORE_THAN_A_PLAN: TOO_MANY,
    SMALLER: TOO_SMALL,
    ON_MDT: TOO_SMALL,
    NO_USABLE_OST: NO_ROOM,
    MORE_STRIPES: TOO_MANY,
    LIBLUSTREAPI: REFUSED,
    "the default layout": OWN_LAYOUT,  # layout.manager, layout.rules
    "layout of rule": OWN_LAYOUT,
    FAILED_FORECAST: FORECAST_FAILED,
    ITS_OST: NO_ROOM,
    MAY_NOT_ASK: NOT_ALLOWED,
    NO_ID_OF_ITS_OWN: NOT_ALLOWED,
    KEY_REFUSED: NOT_ALLOWED,
    "run.": EXCLUDED,  # config.taking_part names the setting
    "stopped by ": DISABLED,  # store.stop
    "mdsd: no OSS has reported ": UNKNOWN,  # clientd's planner
    "uid ": NO_ROOM,  # mdsd.user_share
    "pool ": NO_ROOM,  # allocate.eligible, allocate.partly
    "file system ": NO_ROOM,
}
"""How the text of a reason begins → its word."""

OF_OUTCOME = {
    "unmanaged": OBSERVING,
    "hit": "",
    "late": TOO_LATE,
    "miss": NOT_EXPECTED,
    "refused": REFUSED,
    "advised": ADVISING,
    "skipped": OWN_LAYOUT,
    "raced": OVERTAKEN,
    "partly": PARTLY,
}
"""Outcome of a create → why, as far as the placement library knows; empty: it is placed. In `unmanaged` and `miss` of
mode `place` the plan knows better.
"""
OF_STATUS = {
    "planned": NOT_EXPECTED,
    "forecast": OBSERVING,
    "nothing": NO_FORECAST,
    LEFT_TO_LUSTRE: NO_GAIN,
    "declined": BUSY,
    "never": IMPOSSIBLE,
    "later": NO_ROOM,
    "unknown-fs": UNKNOWN,
    "unavailable": SILENT,
}
"""Status of a plan (`wire.local.PlanReply`) → why files of it are left, where its reason does not tell."""


def spills(pool: str) -> str:
    """How the reason begins of files whose pool Lustre has go over into another one; its word is that of `pool `."""
    return f"pool {pool} is over its threshold and spills over"


def of_text(text: str) -> str:
    """The word of a reason; empty where its text is no known one."""
    return next((word for start, word in TEXTS.items() if text.startswith(start)), "")


def of_plan(status: str, reason: str) -> str:
    """The word of a plan as a whole."""
    if status in ("never", "later", "unavailable", "unknown-fs"):
        known = of_text(reason)
        return known if known in (EXCLUDED, DISABLED, UNKNOWN, NOT_ALLOWED) else OF_STATUS[status]
    return of_text(reason) or OF_STATUS.get(status, SILENT)


def sentence(word: str) -> str:
    """The word and what it means; the word alone where it is another version's."""
    return str(NotPlaced(word))


LONGEST_DETAIL = 400
SKIPPED = (
    "",
    "the program sets a layout of its own",
    "the mode that the program asks for has no write permission for its owner",
    "the file system takes no layouts from this user",
    "the program appends, for which the MDS has a layout of its own",
    "it is no file that can have a layout",
    "libc opens it by itself (fopen, freopen)",
    "it had a layout when the placement library saw it first",
)
"""Why the placement library skipped a file, by the number in its record (docs/formats.md, "Spool")."""


class NotPlaced(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why files were not placed."""

    word: str
    """One of REASONS."""
    detail: str = ""
    """What happened in this case, without a full stop."""

    def __str__(self) -> str:
        start = f"{self.word}: "
        detail = self.detail.removeprefix(start) or REASONS.get(self.word, ("",))[0]
        return f"{start}{detail}" if detail else self.word


def of_file_in_plan(text: str) -> NotPlaced:
    """Of what a plan says of a file that it leaves to Lustre."""
    return NotPlaced(of_text(text) or NOT_EXPECTED, text[:LONGEST_DETAIL])
