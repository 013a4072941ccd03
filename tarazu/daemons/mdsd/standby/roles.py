"""Which of two mdsds answers.

Roles. `asking`: just started, answers nobody; it asks the other one who is active. `active`: answers. `following`:
keeps its book equal to the active one's, and answers nothing but how it is.

Every reign of an active mdsd has a number, its term, which grows; those of the first mdsd are even, of the second odd.
An mdsd becomes active
  - when both are asking or following, and it knows more: by (term, number of its last record), the first one if equal;
  - when the active one says that it leaves or that its disk takes nothing, or is not heard for `TAKEOVER_S`;
  - when it has asked for `START_S` and nobody answers. A second one that never followed does not: it knows nothing;
  - after `BEHIND_S` of either where the other one may have answered what is not known here: it may come back.
It writes its new term to its disk before it answers anybody. Where both are active, the one with the lower term steps
down: it answers nobody from that moment, hands over what it promised alone (handover.py), takes the other's book, and
follows.

What is certain. While the other one follows, an answer leaves only when its records are on both disks, so whoever takes
over knows all that was ever answered. When the follower is silent for `SYNC_S` with records under way, the active one
goes on alone: promises whose answers have not left are revoked, and made again when they are asked for again; from then
on it gives away half of what is free (tarazu/allocate/alone.py), as does one that took over. So it does not matter who
is cut off from whom, who is stale, and who believes to be active: together they never promise more than there is. When
the other one keeps up again, answers wait for it; once it has acknowledged all that left before, nothing counts twice.

What is not: that one only answers. Without a third that would need an active one that stops at its follower's silence,
and two would be out as often as one. Each answer carries its term, and who has heard of a term takes none of an earlier
one (tarazu/wire/transport.py). In one term a request has one answer, also when the other's promises come in.

Time is measured while we listen: an mdsd that was stopped or held up reads what the other one said before it judges.
"""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from tarazu.allocate.records import Alone, Closed, Ended, Joined, Promised, Revoked, held
from tarazu.daemons.mdsd.book import Book
from tarazu.daemons.mdsd.standby.feed import Feed
from tarazu.daemons.mdsd.standby.following import Following
from tarazu.daemons.mdsd.standby.handover import own_term, take_over
from tarazu.wire.replication import HERE_S, Follow, Here, Link, Role, Said, Taken
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.mdsd")

ASKING_S = 0.1
START_S = 3.0
TAKEOVER_S = 3.0
BEHIND_S = 10.0
"""More than a killed mdsd takes until it is back."""
SYNC_S = 1.0
REJOIN_S = 1.0
"""A follower that has caught up is waited for again after this: one that comes and goes must not hold up answers."""
FOLLOW_AGAIN_S = 5.0
LEAVING_S = 2.0
WITHHELD = "withheld "
"""Before the id of a promise that is neither made nor free."""
READING_S = 0.25
"""So long messages of the other one are taken in before anything else is looked at."""
LONGEST_TURN_S = 0.5
"""A turn of the loop that takes longer counts as one of this length."""


class Pair:
    """One of two mdsds, as it sees itself and the other."""

    def __init__(
        self,
        book: Book,
        link: Link,
        second: bool,
        parted: Callable[[], None],
        stepped_down: Callable[[], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`parted` is called when answers that have not left tell of promises that were revoked, and what is being
        allocated may be too much; `stepped_down` when the other one answers from now on.
        """
        self.book, self.link, self.second = book, link, second
        self.role: Role = "asking"
        self.process = uuid.uuid4().hex
        self.other: Here | None = None
        self.feed = Feed(book, link.send, lambda: self._t)
        self.following = Following(book, link.send, second)
        self.leaving = False
        self._parted, self._stepped_down = parted, stepped_down
        self._joining: int | None = None
        """Number of the last record of which answers could leave before they began to wait for the other one."""
        self._asked: list[Follow] = []
        self._told = False
        self._said_once = SaidOnce(log)
        self._highest = book.alone.term
        """Latest known term."""
        self._t = 0.0
        """Seconds that we listened."""
        self._monotonic = monotonic
        self._looked = monotonic()
        self._heard = self._said = self._changed = 0.0
        self._said_role = ""

    @property
    def active(self) -> bool:
        return self.role == "active"

    @property
    def joined(self) -> bool:
        """The other one knows all that was answered."""
        return self.active and not self.book.alone.alone

    def safe(self) -> int:
        """Number of the last record of which answers may tell."""
        if not self.active:
            return -1
        waits = self.joined or self._joining is not None
        return min(self.book.durable, self.feed.acked) if waits else self.book.durable

    def next_s(self) -> float:
        """Seconds until there is something to do without a message."""
        return max(0.0, self._said + self._period_s() - self._t - (self._monotonic() - self._looked))

    def _period_s(self) -> float:
        return ASKING_S if self.role == "asking" else HERE_S

    def look(self) -> None:
        """Once a turn of the loop, before anything is answered."""
        now = self._monotonic()
        self._t += min(now - self._looked, LONGEST_TURN_S)
        self._looked = now
        drained = self._receive(now)
        if self.active:
            self._reign()
        elif drained:
            self._wait()
        if self._t - self._said >= self._period_s() or self._said_role != self.role:
            self._say()

    def committed(self) -> None:
        """Once a turn, after the commit."""
        if self.role == "following":
            self.following.acknowledge()

    def leave(self, send: Callable[[int], None]) -> None:
        """We end: let the other one take over at once. `send` lets out the answers up to a record."""
        deadline = self._monotonic() + LEAVING_S
        while self.joined and self._monotonic() < deadline:
            if self.feed.acked >= self.book.sequence and not self.leaving:
                send(self.safe())
                self.leaving = True
                self._say()
            time.sleep(0.005)
            self._receive(self._monotonic())
        self.leaving = True
        self._say()

    def status(self) -> dict[str, Any]:
        """For people; plain values."""
        alone = self.active and self.book.alone.alone
        other = self.other
        return {
            "which": "second" if self.second else "first",
            "role": self.role,
            "term": self.book.alone.term,
            "sequence": self.book.sequence,
            "alone": alone,
            "in_step": self.joined or (self.role == "following" and self.following.complete),
            "lag": self.feed.lag() if self.active and self.feed.session else 0,
            "address": self.link.address,
            **self.link.counts.summary(),
            "other": {
                "role": other.role,
                "term": other.term,
                "sequence": other.sequence,
                "silent_s": self._t - self._heard,
                "problem": other.problem,
            }
            if other
            else None,
        }

    def _receive(self, now: float) -> bool:
        """Take in what the other one said; False when there may be more."""
        while self._monotonic() - now < READING_S:
            message = self.link.receive()
            if message is None:
                return True
            self._take(message)
        return False

    def _take(self, message: Said) -> None:
        if isinstance(message, Here):
            self._meet(message)
        elif isinstance(message, Follow):
            self._asked = [] if message.number == 0 else self._asked
            if self.active and message.number == len(self._asked):
                self._asked.append(message)
                if message.last:
                    self._begin_feed()
        elif isinstance(message, Taken):
            self.feed.take(message)
        elif self.role == "following":
            self.following.take(message, self._t, self._other_now_s())

    def _meet(self, here: Here) -> None:
        """What follows from how the other one is."""
        if here.second == self.second:
            if not self._told:
                self._told = True
                log.error("the other mdsd is the %s one as well", "second" if here.second else "first")
            return
        before, self.other, self._heard = self.other, here, self._t
        self._highest = max(self._highest, here.term)
        restarted = before is not None and before.process != here.process
        if here.role == "active":
            if restarted or (before and before.term != here.term):
                self.following.stop()
            self._meet_active(here)
        elif self.active:
            if here.leaving or restarted:
                self._part("the other mdsd ends" if here.leaving else "the other mdsd was restarted")
                self.feed.stop()
        elif here.leaving:
            self._heard = -math.inf
        elif not self.leaving and self._knowledge() > _knowledge(here):
            self._become_active("we know more than the other mdsd")
        if here.role == "asking" and self._t > self._said:
            self._say()

    def _meet_active(self, here: Here) -> None:
        """It answers: unless it ends, or we did so in a later term."""
        if self.active:
            if here.term > self.book.alone.term:
                self._step_down()
        elif here.leaving:
            if self.following.complete and self.book.sequence >= here.sequence:
                gives_way = f"steps down: {here.problem}" if here.problem else "ends"
                self._become_active(f"the active mdsd {gives_way}")
        elif here.term < self.book.alone.term and own_term(self.book.alone.term, self.second):
            self._become_active("the other mdsd is active in an older term")
        else:
            self.role, self.book.follows = "following", True
            self.book.clock.follow(here.now_s)

    def _knowledge(self) -> tuple[int, int, bool]:
        return self.book.alone.term, self.book.sequence, not self.second

    def _reign(self) -> None:
        lost = not self.feed.session or self.feed.stalled_s() > SYNC_S or self._t - self._heard > TAKEOVER_S
        if self.joined and lost:
            self._part("the other mdsd is silent")
        elif self._joining is not None and lost:
            self._joining, self._changed = None, self._t
        elif self._joining is not None and self.feed.acked >= self._joining:
            self._join()
        elif not self.joined and not lost and self.feed.close and self._t - self._changed > REJOIN_S:
            self._joining = self._joining or self.book.sequence

    def _wait(self) -> None:
        silent_s = self._t - self._heard
        if self.role == "asking":
            knows = self.book.alone.term > 0 or not self.second
            # Where the other one followed it has gone on without us, for as long as we were away.
            left_behind = self.book.alone.term > 0 and not self.book.alone.alone
            if knows and silent_s > (BEHIND_S if left_behind else START_S):
                self._become_active("no other mdsd answers")
        elif silent_s > TAKEOVER_S:
            if self.book.alone.term > 0 and (silent_s > BEHIND_S or not self._behind()):
                self._become_active(f"the active mdsd is silent for {silent_s:.1f} s")
        elif self.other and self.other.role == "active" and not self.book.trouble:
            fed = self.other.feeds == self.following.session
            behind = not fed or self._behind() or self.other.sequence < self.book.sequence
            wait_s = FOLLOW_AGAIN_S if self.following.session else HERE_S
            if behind and self._t - self.following.progress > wait_s:
                self._say()  # a new process is known before it asks
                self.following.ask(self._t)

    def _behind(self) -> bool:
        """Whether the active one had answered what we do not know when it was heard last."""
        return not self.following.complete or (
            self.other is not None and self.other.sequence > self.book.sequence
        )

    def _become_active(self, why: str) -> None:
        """In a new term. Nothing is answered before it is on the disk."""
        book, now_s = self.book, self.book.clock.now()
        if book.trouble:
            self._said_once.warning(f"cannot become active: {book.trouble}")
            return
        ours = own_term(book.alone.term, self.second)
        if not ours:
            # What the other one counted twice is known here.
            book.note(Joined(book.alone.term, now_s))
        term = max(self._highest, book.alone.term) + 1
        term += not own_term(term, self.second)
        book.ledger.hear_all(now_s)
        book.note(Alone(term, now_s, doubted=ours))
        self.following.stop()
        self.role, self.book.follows = "active", False
        self._highest, self._changed, self._joining = term, self._t, None
        book.commit()
        log.warning("active in term %d: %s", term, why)
        self._say()

    def _step_down(self) -> None:
        log.warning("the other mdsd is active in a later term: we follow")
        self.role, self.book.follows = "following", True
        self.feed.stop()
        self._stepped_down()

    def _part(self, why: str) -> None:
        """Go on alone.

        What the other one may not know was not promised, since its answer has not left; nor is it free, since the other
        one may know it, and answer.
        """
        if not self.joined:
            return
        book = self.book
        book.commit()
        unknown = self.feed.unknown()
        for record in unknown:
            if isinstance(record, Promised) and (promise := book.ledger.get(record.id)):
                withheld = held(WITHHELD + record.id, promise)
                book.note(Revoked(record.id))
                book.note(msgspec.structs.replace(withheld, alive_s=0.0))
        book.note(Alone(book.alone.term, book.clock.now()))
        for record in unknown:
            if isinstance(record, Closed | Ended):
                book.note(record)
        self._changed = self._t
        self._parted()
        log.warning("we answer alone: %s", why)

    def _join(self) -> None:
        now_s = self.book.clock.now()
        self._joining = None
        for id in [id for id, _ in self.book.ledger.promises() if id.startswith(WITHHELD)]:
            self.book.note(Ended(id, now_s))
        self.book.note(Joined(self.book.alone.term, now_s))
        log.info("the other mdsd follows")

    def _begin_feed(self) -> None:
        """The other one asked for all: what it hands over comes first."""
        self._part("the other mdsd starts again from nothing")
        self._joining = None
        try:
            take_over(self.book, self._asked)
        except ValueError as error:
            log.warning("what the other mdsd hands over cannot be read: %s", error)
        self.feed.start(self._asked[-1].session)
        self._asked, self._changed = [], self._t

    def _gives_way(self) -> bool:
        """Whether the other one had better answer: our disk takes nothing, its disk does, and it has all."""
        well = self.other is not None and not self.other.problem
        return bool(self.book.trouble) and self.joined and well and self.feed.acked >= self.book.sequence

    def _other_now_s(self) -> float:
        return self.other.now_s + self._t - self._heard if self.other else self.book.clock.now()

    def _say(self) -> None:
        self._said, self._said_role = self._t, self.role
        book = self.book
        if self.role == "following":
            self.following.acknowledge(again=True)
        self.link.send(
            Here(
                self.process,
                self.second,
                self.role,
                book.alone.term,
                book.sequence,
                book.clock.now(),
                self.leaving or self._gives_way(),
                self.feed.session,
                book.trouble[:100],
            )
        )


def _knowledge(here: Here) -> tuple[int, int, bool]:
    return here.term, here.sequence, not here.second
