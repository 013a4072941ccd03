"""The part of the stand-in `lfs` that lists targets: df, osts, mdts, as lfs.py beside it; from a client's parameters.
Captured on Lustre 2.17.57 (client/cmd/lfs_df.txt and its like).

df  [-i]  [PATH]; -h is not there
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

KINDS = (("MDT", "mdc"), ("OST", "osc"))
ROW = "{:20} {:11} {:11} {:11} {}  {} \n"
OF_BYTES = (
    ("kbytestotal", "kbytesfree", "kbytesavail"),
    "UUID                   1K-blocks        Used   Available Use%",
)
OF_FILES = (
    ("filestotal", "filesfree", "filesfree"),
    "UUID                      Inodes       IUsed       IFree IUse%",
)


def _root() -> str:
    return os.environ.get("TARAZU_ROOT", "/")


def _names(path: str) -> list[str]:
    try:
        return sorted(os.listdir(os.path.join(_root(), path)))
    except OSError:
        return []


def _numbers(path: str, names: Sequence[str]) -> list[int]:
    """Those that the target does not have are 0."""
    found = []
    for name in names:
        try:
            with open(f"{path}/{name}") as file:
                found.append(int(file.read()))
        except OSError:
            found.append(0)
    return found


def _percent(used: int, avail: int) -> str:
    return f"{-(-100 * used // (used + avail)) if used + avail else 0:3}%"


def df(words: Sequence[str]) -> int:
    """Each target and the sum, in KiB or, with -i, inodes: of those the MDTs' are the file system's."""
    inodes = any(word in ("-i", "--inodes") for word in words)
    mount = next((word for word in words if not word.startswith("-")), os.environ.get("TESTBED_MOUNT", ""))
    names, head = OF_FILES if inodes else OF_BYTES
    text = f"{head}  Mounted on\n"
    total = [0, 0, 0]
    for kind, devices in KINDS:
        for device in _names(f"sys/fs/lustre/{devices}"):
            target, index = (
                device.rpartition(f"-{devices}-")[0],
                int(device.rpartition(f"-{kind}")[2][:4], 16),
            )
            size, free, avail = _numbers(f"{_root()}/sys/fs/lustre/{devices}/{device}", names)
            row = (size, size - free, avail)
            share = _percent(size - free, avail)
            text += ROW.format(f"{target}_UUID", *row, share, f"{mount}[{kind}:{index}]")
            if (kind == "MDT") == inodes:
                total = [a + b for a, b in zip(total, row, strict=True)]
    text += "\n" + ROW.format("filesystem_summary:", *total, _percent(total[1], total[2]), mount)
    print(text)
    return 0


def _list(title: str, device: str) -> int:
    print(title)
    for name in _names(f"sys/fs/lustre/{device}"):
        with open(f"{_root()}/sys/kernel/debug/lustre/{device}/{name}/target_obd") as file:
            print(file.read(), end="")
    return 0


def osts(words: Sequence[str]) -> int:
    return _list("OBDS:", "lov")


def mdts(words: Sequence[str]) -> int:
    return _list("MDTS:", "lmv")


COMMANDS = {"df": df, "osts": osts, "mdts": mdts}


def main(words: Sequence[str]) -> int:
    if not words or words[0] not in COMMANDS:
        print(f"lfs: expected one of {', '.join(COMMANDS)}", file=sys.stderr)
        return 1
    return COMMANDS[words[0]](words[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
