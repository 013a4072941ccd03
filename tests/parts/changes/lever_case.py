"""Plain files of two directories, as an OST pool is: what is set lasts, each is somebody's, and rests in a stop."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from tarazu.errors import BadInput, Unavailable
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.model.change import Change, Part
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.model.lever import Lever
from tarazu.parts.changes.store import Store
from tests.parts.changes.case import Case

WIDTH = 4
"""Bytes of a value, so that it is written by one call; a file that is empty counts as one that is not there."""


class FilesLever(Lever):
    name = "files"
    lasting = apart = rests = True

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        try:
            names = os.listdir(self.root / target)
        except OSError as error:
            raise Unavailable(f"{target}: {error.strerror}") from None
        return tuple(Part(name, self._text(target, name)) for name in sorted({*names, *parts}))

    def _text(self, target: str, name: str) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self.root / target / name).read_text()
        return ""

    def check(self, target: str, wanted: Mapping[str, str]) -> None:
        for name, value in wanted.items():
            if len(value) not in (0, WIDTH):
                raise BadInput(f"{target}/{name}", f"{WIDTH} characters or none", value)

    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        for name, value in wanted.items():
            path = self.root / target / name
            if value:
                file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
                os.pwrite(file, value.encode(), 0)
                os.close(file)
            else:
                path.unlink(missing_ok=True)

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        return [f"printf {value} > {target}/{name}" for name, value in wanted.items()]

    def back(self, held: Held, parts: Sequence[Part], *, for_good: bool) -> Mapping[str, str]:
        """What was made from nothing stays there while it rests."""
        return {part.name: part.value for part in held.before if for_good or part.value}


class FilesCase(Case):
    name = "files"
    lasting = True

    def __init__(self, root: Path, *, in_process: bool = True) -> None:
        super().__init__(root, in_process=in_process)
        for place in ("one", "two"):
            if not (root / place).exists():
                (root / place).mkdir()
                for name in ("a", "b"):
                    (root / place / name).write_text("were")

    def environment(self) -> dict[str, str]:
        return {"TARAZU_ROOT": str(self.root)}

    def made(self, stopped: Callable[[], str]) -> Agent:
        store = Store(self.root / "state" / "files")
        return Agent("files", store, {"files": FilesLever(self.root)}, self.settings, stopped=stopped)

    def wishes(self) -> list[list[Change]]:
        def wish(target: str, **wanted: str) -> Change:
            return Change(lever="files", target=target, wanted=wanted, why="a test", asked_by="test")

        return [
            [wish("one", a="ours", new="ours")],
            [wish("one", a="more", b="ours"), wish("two", a="ours", new="ours", b="ours")],
            [wish("two", a="", new="more")],
        ]

    def now(self) -> dict[str, str]:
        paths = [path for place in ("one", "two") for path in (self.root / place).iterdir()]
        return {str(path.relative_to(self.root)): text for path in paths if (text := path.read_text())}

    def administrator(self, number: int) -> None:
        place, name = ("one", "two")[number % 2], ("a", "new", "b")[number % 3]
        (self.root / place / name).write_text(f"{number:04}")


CASES = (FilesCase,)
