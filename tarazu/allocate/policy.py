"""What an allocation policy is: one method, `allocate(view, requests)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tarazu.model import Allocation, CreateRequest, SystemView

NAME = "tarazu"
"""The policy that mdsd places by (`pipeline.Tarazu`)."""
OF_JOB = 1 << 32
"""Numbers of waves so far apart are of different jobs, which run side by side."""


class Policy(Protocol):
    """Chooses OSTs for files that are expected to be created."""

    name: str

    def allocate(
        self, view: SystemView, requests: Sequence[CreateRequest], of_wave: Sequence[int] = ()
    ) -> Allocation:
        """Place every request; raises InfeasibleRequest (never) or InsufficientResources (not now).

        of_wave: of each request, a number that it shares with those written at about the same time; empty: not known.
        From one multiple of `OF_JOB` to the next they are of one job. Policies to compare with take no notice of it.
        """
        ...
