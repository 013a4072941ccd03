#!/usr/bin/env python3
"""make release: all that a release is made of, in dist/, from a clean checkout; nothing is signed, tagged or sent.

Checks that the version of pyproject.toml has its chapter in CHANGELOG.md and that nothing is uncommitted; has
`make dist` build with the commit's time (packaging/reproducible.py), so that whoever builds the same commit on the same
release of the distribution gets the same bytes; writes SHA256SUMS; and says what is left for a person to type.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import reproducible
import tree

DIST = tree.SOURCE / "dist"
SUMS = "SHA256SUMS"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--twice", action="store_true", help="build twice, and compare each byte")
    parser.add_argument("--any", action="store_true", help="for trying: whatever the changelog and git say")
    parser.add_argument("--only", action="append", default=[], metavar="KIND", help="as `make dist` has it")
    options = parser.parse_args()
    if not options.any and (why := problem()):
        print(f"make release: {why}", file=sys.stderr)
        return 2
    epoch = _git("log", "-1", "--format=%ct")
    build(DIST, epoch, options.only)
    sums = sums_of(DIST)
    (DIST / SUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    if options.twice:
        with tempfile.TemporaryDirectory(dir=tree.SOURCE, prefix=".release-") as again:
            build(Path(again) / "dist", epoch, options.only)
            if differ := different(sums, sums_of(Path(again) / "dist")):
                print(f"make release: built twice, {', '.join(differ)} differ", file=sys.stderr)
                return 1
        print(f"built twice: all {len(sums)} files are the same, byte for byte")
    tag = f"v{tree.VERSION}"
    print(f"dist/{SUMS} lists {len(sums)} files. Left for you:")
    print(f"  git tag -s {tag} && git push origin {tag}")
    print(f"  gpg --armor --detach-sign dist/{SUMS}")
    return 0


def problem() -> str:
    """Why this checkout is no release; "" if it is one."""
    if changed := _git("status", "--porcelain"):
        return f"expected everything to be committed, found {changed.splitlines()[0].strip()}"
    chapters = re.findall(r"^## \[([^]]+)\]", (tree.SOURCE / "CHANGELOG.md").read_text(), re.MULTILINE)
    if tree.VERSION not in chapters[:1]:
        found = chapters[0] if chapters else "no chapter"
        return f"expected [{tree.VERSION}] to be the first chapter of CHANGELOG.md, found {found}"
    return ""


def build(out: Path, epoch: str, kinds: list[str]) -> None:
    command = [sys.executable, tree.SOURCE / "packaging" / "dist.py", "--out", out]
    only = [word for kind in kinds for word in ("--only", kind)]
    subprocess.run([*command, *only], check=True, env=os.environ | {reproducible.NAME: epoch})


def sums_of(folder: Path) -> dict[str, str]:
    """File → SHA-256 of it, in hexadecimal."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name != SUMS
    }


def different(one: dict[str, str], other: dict[str, str]) -> list[str]:
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", tree.SOURCE, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
