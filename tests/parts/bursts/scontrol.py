"""`scontrol show job` and `scontrol update` of jobs that wait, which are a file: `scontrol.py ROOT WORDS`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

UNSET = {"ReqNodeList": "(null)", "ExcNodeList": "(null)", "Features": "(null)", "Contiguous": "0"}


def jobs(root: Path) -> dict[str, dict[str, str]]:
    path = root / "jobs.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write(root: Path, found: dict[str, dict[str, str]]) -> None:
    beside = root / "jobs.part"
    beside.write_text(json.dumps(found))
    beside.replace(root / "jobs.json")


def main(words: Sequence[str]) -> int:
    root, found = Path(words[0]), jobs(Path(words[0]))
    id = words[-1] if words[1] == "show" else words[2].removeprefix("JobId=")
    if id not in found:
        print("slurm_load_jobs error: Invalid job id specified", file=sys.stderr)
        return 1
    if words[1] == "show":
        print(" ".join(f"{name}={value}" for name, value in {"JobId": id, **found[id]}.items()))
        return 0
    for name, _, value in (word.partition("=") for word in words[3:]):
        found[id][name] = value or "(null)"
    write(root, found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
