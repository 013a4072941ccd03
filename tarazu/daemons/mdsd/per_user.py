"""What mdsd holds of users' requests: bounded in number and bytes, for each user and in all.

When all together hold too much, the one who holds most gives way: nobody's many push out another's few.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")

QUEUE_OF_USER = 1_024
QUEUE_OF_USER_BYTES = 96 << 20
"""One request of a million files."""
QUEUE = 4_000
QUEUE_BYTES = 256 << 20
REPLIES_OF_USER = 2_500
REPLIES_OF_USER_BYTES = 16 << 20
REPLIES = 10_000
REPLIES_BYTES = 64 << 20


class Limits(NamedTuple):
    user_number: int
    user_bytes: int
    number: int
    bytes: int


QUEUE_LIMITS = Limits(QUEUE_OF_USER, QUEUE_OF_USER_BYTES, QUEUE, QUEUE_BYTES)
REPLY_LIMITS = Limits(REPLIES_OF_USER, REPLIES_OF_USER_BYTES, REPLIES, REPLIES_BYTES)


class Excess(NamedTuple):
    """Who holds too much, and in words what was expected and found."""

    uid: int
    why: str


@dataclass
class _User(Generic[Item]):
    items: OrderedDict[str, tuple[Item, int]] = field(default_factory=OrderedDict)
    bytes: int = 0


class PerUser(Generic[Item]):
    """Items by id, in the order in which they came, of users who take turns."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.bytes = 0
        self._users: OrderedDict[int, _User[Item]] = OrderedDict()
        """Whose turn is next comes first."""
        self._owners: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def __contains__(self, id: str) -> bool:
        return id in self._owners

    def __iter__(self) -> Iterator[tuple[str, Item]]:
        """(id, item) of all; nothing may be added or taken meanwhile."""
        for user in self._users.values():
            for id, (item, _) in user.items.items():
                yield id, item

    def owned(self) -> Iterator[tuple[str, int, Item]]:
        """(id, user, item) of all; as for `iter`."""
        for uid, user in self._users.items():
            for id, (item, _) in user.items.items():
                yield id, uid, item

    def get(self, id: str) -> Item | None:
        uid = self._owners.get(id)
        return None if uid is None else self._users[uid].items[id][0]

    def owner(self, id: str) -> int | None:
        """Whose item it is; None for an id that nobody has."""
        return self._owners.get(id)

    def add(self, id: str, uid: int, item: Item, size_bytes: int) -> None:
        """As this user's newest; an item of the same id is replaced. Ask for the `excess` then."""
        self.pop(id)
        user = self._users.setdefault(uid, _User())
        user.items[id] = (item, size_bytes)
        user.bytes += size_bytes
        self.bytes += size_bytes
        self._owners[id] = uid

    def pop(self, id: str) -> Item | None:
        uid = self._owners.pop(id, None)
        if uid is None:
            return None
        user = self._users[uid]
        item, size_bytes = user.items.pop(id)
        user.bytes -= size_bytes
        self.bytes -= size_bytes
        if not user.items:
            del self._users[uid]
        return item

    def first(self) -> tuple[str, Item] | None:
        """The oldest of the user whose turn it is."""
        return next(iter(self), None)

    def take(self) -> Item | None:
        """`first`, taken; the turn passes to the next user."""
        oldest = self.first()
        if oldest is None:
            return None
        uid = self._owners[oldest[0]]
        item = self.pop(oldest[0])
        if uid in self._users:
            self._users.move_to_end(uid)
        return item

    def excess(self, uid: int) -> Excess | None:
        """Who has to give something up after `uid` got one more; None when nobody has to.

        A user's only item is within his own limits, whatever its size.
        """
        limits, user = self.limits, self._users.get(uid)
        if user and len(user.items) > 1:
            if len(user.items) > limits.user_number:
                return Excess(uid, f"at most {limits.user_number} of one user, found {len(user.items)}")
            if user.bytes > limits.user_bytes:
                return Excess(uid, f"at most {limits.user_bytes} bytes of one user, found {user.bytes}")
        if len(self) > limits.number:
            most = max(self._users, key=lambda uid: len(self._users[uid].items))
            return Excess(most, f"at most {limits.number} of all users, found {len(self)}")
        if self.bytes > limits.bytes:
            most = max(self._users, key=lambda uid: self._users[uid].bytes)
            return Excess(most, f"at most {limits.bytes} bytes of all users, found {self.bytes}")
        return None

    def oldest(self, uid: int) -> str:
        return next(iter(self._users[uid].items))

    def newest(self, uid: int) -> str:
        return next(reversed(self._users[uid].items))
