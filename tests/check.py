"""What a change of one room can break, within a minute: `make check`, or `python -m tests.check [FILE…]`.

Style and types of the whole project (both remember what has not changed), then the tests of the rooms in which files
differ from the branch main, of commits and of what is not committed: tarazu/allocate is tested by tests/allocate,
tarazu/cli/job by tests/cli/job. In a room with many tests, those that name a module that has changed. Tests marked slow
or long are left to `make test`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
MANY = 12
"""Files of tests in a room: from so many on only those that name what has changed."""
ELSEWHERE = {"preload": "preload", "docs": "docs", "packaging": "packaging", "README.md": "docs"}
"""First part of a path outside tarazu/ → the folder of its tests."""
ALWAYS = ("test_imports.py",)


def main(files: list[str]) -> int:
    changed = [PurePosixPath(name) for name in files or differing()]
    tests = sorted({test for path in changed for test in tests_of(path)})
    python = Path(sys.executable).parent
    commands = [
        [python / "ruff", "format", "--check", "."],
        [python / "ruff", "check", "."],
        [python / "mypy"],
    ]
    pytest = [python / "pytest", "-q", "-m", "not slow and not long", "-n", "4", "--no-header"]
    commands += [[*pytest, *(f"tests/{name}" for name in (*ALWAYS, *tests))]]
    for command in commands:
        print("==", Path(command[0]).name, *command[1:], flush=True)
        # 5: no tests were chosen, as of a room whose tests are all slow.
        if subprocess.run(command, cwd=ROOT, check=False).returncode not in (0, 5):
            return 1
    return 0


def differing() -> list[str]:
    """Files that differ from where this branch left main, and those that git does not know yet."""
    main = next(
        (name for name in ("origin/main", "main") if _git("rev-parse", "-q", "--verify", name)), "HEAD"
    )
    base = (_git("merge-base", main, "HEAD") or ["HEAD"])[0]
    return _git("diff", "--name-only", base) + _git("ls-files", "--others", "--exclude-standard")


def tests_of(path: PurePosixPath) -> Iterable[str]:
    """Below tests/: files and folders that test the file `path` of the project."""
    if path.parts[0] == "tests":
        here = path.name.startswith("test_") and (ROOT / path).is_file()
        return [str(PurePosixPath(*path.parts[1:]))] if here else []
    if path.parts[0] != "tarazu":
        room = PurePosixPath(ELSEWHERE.get(path.parts[0], ""))
        return [str(room)] if room.parts else []
    inside = PurePosixPath(*path.parts[1:])
    for folder in inside.parents:
        place = ROOT / "tests" / folder
        if folder.parts and place.is_dir():
            files = sorted(place.rglob("test_*.py"))
            if len(files) >= MANY:
                files = [file for file in files if names(file, path)] or files[:MANY]
            return [str(file.relative_to(ROOT / "tests")) for file in files]
    return [f"test_{inside.stem}.py"] if (ROOT / "tests" / f"test_{inside.stem}.py").is_file() else []


def names(test: Path, changed: PurePosixPath) -> bool:
    """Whether a file of tests is called like the module that has changed, or imports it."""
    text = test.read_text()
    package = ".".join(changed.parent.parts)
    imported = f"{package}.{changed.stem}" in text or (
        f"from {package} import" in text and changed.stem in text
    )
    return changed.stem in test.stem or imported


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
