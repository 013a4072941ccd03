"""Views and requests that the allocator's tests share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tarazu.lustre import EOF
from tarazu.model import Component, CreateRequest, Layout, Oss, Ost, SystemView
from tarazu.units import GIB, MIB


class Make:
    """Small builders; every argument that a test does not name is the plain, healthy, empty case."""

    @staticmethod
    def ost(index: int, server: str = "oss0", total: int = 100 * GIB, used: int = 0, **state: object) -> Ost:
        return Ost(index, server, total, total - used, total - used, **state)  # type: ignore[arg-type]

    def view(
        self, osts: int = 8, per_server: int = 4, each: Callable[[int], dict[str, object]] = lambda i: {}
    ) -> SystemView:
        targets = [self.ost(i, f"oss{i // per_server}", **each(i)) for i in range(osts)]  # type: ignore[arg-type]
        servers = tuple(Oss(f"oss{i}") for i in range((osts + per_server - 1) // per_server))
        return SystemView("lustre", 0.0, tuple(targets), servers)

    @staticmethod
    def plain(stripes: int, size: int, stripe_size: int = MIB, pool: str = "") -> CreateRequest:
        return CreateRequest(size, Layout((Component(0, EOF, stripe_size, stripes, pool=pool),)))

    @staticmethod
    def progressive(size: int, counts: Sequence[int] = (1, 3, 8)) -> CreateRequest:
        """Components of 64 MiB, then each four times as long as the one before; the last one without end."""
        parts, start, length = [], 0, 64 * MIB
        for n, count in enumerate(counts):
            end = EOF if n == len(counts) - 1 else start + length
            parts.append(Component(start, end, MIB, count))
            start, length = end, length * 4
        return CreateRequest(size, Layout(tuple(parts), composite=True))


@pytest.fixture
def make() -> Make:
    return Make()
