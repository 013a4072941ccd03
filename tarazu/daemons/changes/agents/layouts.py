"""The agent of a user's default layouts (`tarazu change prepare`): his own directory, his own trail.

Limits hold for what is shared; these directories are the user's, and each job's by itself.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from tarazu import config
from tarazu.changes.change import ALL, Change, Part, Score
from tarazu.changes.goals import CannotMend
from tarazu.changes.held import Held
from tarazu.changes.limits import Limits
from tarazu.changes.trail import event
from tarazu.config import own_path
from tarazu.daemons.changes.agent import Agent
from tarazu.daemons.changes.done import Done
from tarazu.daemons.changes.levers.layout import LayoutLever
from tarazu.daemons.changes.store import Store
from tarazu.errors import StoreError, Unavailable
from tarazu.prepare import former
from tarazu.prepare.askers import Askers, mine
from tarazu.store import stop
from tarazu.store.stop import SiteStop, SiteWatch

LOCK_S = 10.0
MOST = 1_000_000
TRAIL_BYTES = 1 << 20
"""A user's trail is kept so long, and once more as `trail.jsonl.1`."""
UNDO = "tarazu change prepare --undo"


def agent_of(
    settings: config.Settings,
    name: str = "tarazu change prepare",
    *,
    stopped: Callable[[], str] | None = None,
) -> Agent:
    directory = own_path(settings.run.state_dir) / "prepared"
    lever = LayoutLever()
    agent = Agent(
        name,
        Store(directory, name, "tarazu change prepare"),
        {lever.name: lever},
        settings,
        programs=(lever.program,),
        stopped=stopped or (lambda: str(stop.site_stop(settings.run.stop_file) or "")),
        trail=directory,
    )
    agent.engine.limits = Limits(MOST, MOST, MOST)
    return agent


class Layouts:
    """The directories of one job: set before it, taken back after it."""

    def __init__(self, settings: config.Settings) -> None:
        self.agent = agent_of(settings)
        self.askers = Askers(self.agent.store.directory)
        self.me = mine()
        self._stop_file = settings.run.stop_file
        self._cannot: set[str] = set()
        """Directories of which it was told whether their files can be kept from what is amiss."""

    def begin(
        self,
        wanted: Sequence[tuple[str, str]],
        application: str,
        *,
        scores: Mapping[str, tuple[Score, ...]] = MappingProxyType({}),
        cannot: Mapping[str, str] = MappingProxyType({}),
    ) -> Done:
        """(directory, words) each, after what jobs that are gone have left. `cannot`: directory → why its files cannot
        be kept from what is amiss. Raises StoreError, Unavailable.
        """
        self.clean("its job has ended")
        if not (wanted or cannot):
            return Done()
        self._rotate()
        self.askers.come(self.me)
        why = f"{application or 'a job'} writes there"
        self._cannot = {directory for directory, _ in wanted} | {*cannot}
        self._tell(self._cannot, cannot)
        changes = [_change(directory, words, why, scores.get(directory, ())) for directory, words in wanted]
        return self.agent.make(changes, why, asker=self.me, wait_s=LOCK_S)

    @property
    def held(self) -> list[Held]:
        """This job's."""
        return [held for held in self.agent.store.held_changes.values() if self.me in held.askers]

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """While the job runs: other nodes see that it does; when the site is stopped all is taken back at once."""
        watch = SiteWatch(self._stop_file, self._obey)
        watch.start()
        try:
            with self.askers.renewed(self.me):
                yield
        finally:
            watch.end()
            self.askers.go(self.me)

    def _obey(self, stopped: SiteStop | None) -> None:
        if stopped:
            self.end(str(stopped))

    def end(self, why: str = "the job has ended") -> Done:
        """Raises StoreError, Unavailable."""
        if not self.agent.store.directory.exists():
            return Done()
        done = self.agent.engine.leave(lambda asker: asker == self.me, why, wait_s=LOCK_S)
        if self._cannot:
            self._tell(self._cannot, {})
        return done

    def _tell(self, directories: Collection[str] | None, cannot: Mapping[str, str]) -> None:
        """`tarazu change list` shows of these (None: all) what cannot be mended, while the job runs; where it can be
        written down.
        """
        store, name = self.agent.store, LayoutLever.name
        new = tuple(CannotMend(name, directory, why) for directory, why in cannot.items())
        with contextlib.suppress(StoreError, Unavailable), store.locked(LOCK_S):
            found = store.proposals()
            others = tuple(
                each for each in found.cannot_mend if directories and each.target not in directories
            )
            if (*others, *new) != found.cannot_mend:
                store.propose(msgspec.structs.replace(found, cannot_mend=(*others, *new)))
        for each in new:
            self.agent.trail.add(
                event("cannot mend", self.agent.name, lever=name, target=each.target, why=each.why)
            )

    def clean(self, why: str = UNDO) -> Done:
        """Take back what jobs that are gone have left. Raises StoreError, Unavailable."""
        if not self.agent.store.directory.exists():
            return Done()
        self._take_over_former()
        done = self.agent.engine.leave(self.askers.gone, why, wait_s=LOCK_S)
        self.askers.forget_gone()
        if self.askers.nobody:
            self._tell(None, {})
        return done

    def running(self) -> list[tuple[str, str]]:
        """(directory, who wants it still). Raises StoreError."""
        notes = former.notes(self.agent.store.directory).values()
        old = [(s.path, f"process {note.pid} on {note.host}") for note in notes for s in note.directories]
        here = self.me.split(".")[0]
        held = self.agent.store.held_changes.values()
        new = [(each.change.target, _words(asker, here)) for each in held for asker in each.askers]
        return sorted({*old, *new})

    def _take_over_former(self) -> None:
        store = self.agent.store
        with store.locked(LOCK_S):
            notes = former.notes(store.directory)
            gone = {path: note for path, note in notes.items() if not former.alive(path, note)}
            used = {s.path for path, note in notes.items() if path not in gone for s in note.directories}
            used |= {target for _, target in store.held_changes}
            more = {
                s.path: Held(
                    change := _change(s.path, s.words, f"{note.application} wrote there"),
                    (Part(s.path, "", f"{s.device}:{s.inode}"),),
                    (change.wanted,),
                    s.since_s,
                    lasting=True,
                    first_s=s.since_s,
                )
                for note in gone.values()
                for s in note.directories
                if s.path not in used
            }
            store.note_all([*store.held_changes.values(), *more.values()])
            try:
                for path in gone:
                    path.unlink(missing_ok=True)
            except OSError as error:
                raise StoreError(str(path), "a file that can be removed", error.strerror) from None

    def _rotate(self) -> None:
        path = self.agent.trail.path
        with contextlib.suppress(OSError):
            if path.stat().st_size > TRAIL_BYTES:
                os.replace(path, f"{path}.1")


def _change(directory: str, words: str, why: str, scores: tuple[Score, ...] = ()) -> Change:
    return Change(
        lever=LayoutLever.name,
        target=directory,
        wanted={ALL: words},
        why=why,
        asked_by="prepare",
        scores=scores,
    )


def _words(asker: str, here: str) -> str:
    boot, _, pid, _ = asker.split(".")
    return f"process {pid} here" if boot == here else f"process {pid} on another node"
