"""How much mdsd promises, to one user and in all, and what of the reports it takes in."""

from __future__ import annotations

from collections import Counter
from heapq import nlargest

import msgspec

from tarazu.allocate import partly
from tarazu.allocate.ledger import Ledger
from tarazu.daemons.mdsd.allocation_requests import MAX_NAME_CHARACTERS, promised_stripes, requests_of
from tarazu.model import Left, SystemView
from tarazu.wire.messages import AllocationRequest
from tarazu.wire.reports import OssReport

MAX_PROMISES = 100_000
MAX_PROMISES_OF_USER = 20_000
MAX_STRIPES = 10_000_000
MAX_STRIPES_OF_USER = 5_000_000
"""What the ledger holds at most: some 300 MB."""


class PromiseLimits:
    """No user's promises may hold more than a share of what is free: a forged or forgotten plan blocks nobody.

    Nor may they fill mdsd's memory, one user's or all.
    """

    def __init__(self, share: float, ledger: Ledger) -> None:
        self.share = share
        self._ledger = ledger

    def refusal(self, request: AllocationRequest, view: SystemView) -> str:
        """Why nothing of this request may be promised; empty when something may."""
        return self.of_batch(view).refusal(request)

    def beyond(self, request: AllocationRequest, view: SystemView) -> dict[int, Left]:
        """File → why it has to be left: what is more than the user's share, the files that gain least first."""
        return self.of_batch(view).beyond(request)

    def of_batch(self, view: SystemView) -> BatchLimits:
        """For requests that are allocated together."""
        return BatchLimits(self._ledger, self.share, view)


class BatchLimits:
    """Those of requests on one view, of which each counts for the next."""

    def __init__(self, ledger: Ledger, share: float, view: SystemView) -> None:
        self._ledger, self._share, self._fs_name = ledger, share, view.fs_name
        self._free = sum(o.avail_bytes for o in view.osts if o.usable)
        self._bytes: Counter[int] = Counter()
        self._numbers: Counter[int | None] = Counter()
        self._stripes: Counter[int | None] = Counter()
        """By user, None: of all."""

    def refusal(self, request: AllocationRequest) -> str:
        """Why nothing of this request may be promised; empty when something may."""
        beyond = self.beyond(request)
        if request.files and len(beyond) == len(request.files):
            return beyond[0].why
        return self._too_many(request.uid, promised_stripes(request))

    def take(self, request: AllocationRequest) -> dict[int, Left]:
        """It is part of the batch; which of its files have to be left."""
        left = self.beyond(request)
        self._bytes[request.uid] += sum(f.size_bytes for i, f in enumerate(request.files) if i not in left)
        for who in (request.uid, None):
            self._numbers[who] += 1
            self._stripes[who] += promised_stripes(request)
        return left

    def beyond(self, request: AllocationRequest) -> dict[int, Left]:
        """File → why it has to be left: what is more than the user's share, the files that gain least first."""
        held = self._ledger.held_bytes(request.uid, self._fs_name) + self._bytes[request.uid]
        asked = sum(file.size_bytes for file in request.files)
        free, most = self._free, self._share * self._free
        if held + asked <= most:
            return {}
        why = Left(
            f"uid {request.uid} holds promises of {held} bytes and asks for {asked}: "
            f"expected at most {self._share:.0%} of the {free} that are free (mdsd.user_share)"
        )
        left = partly.beyond(requests_of(request), most - held)
        # Of what is larger than all that is free the allocator says why: nobody could have it.
        return {i: why for i in left if request.files[i].size_bytes <= free}

    def refusal_of_told(self, uid: int, size_bytes: int, stripes: int) -> str:
        """Why what a leader says was promised to this user is not entered; empty when it is.

        As long as no server has reported nobody knows what is free.
        """
        held, most = self._ledger.held_bytes(uid, self._fs_name), self._share * self._free
        if self._free and held + size_bytes > most:
            return f"expected promises of at most {most:.0f} bytes of uid {uid}, found {held + size_bytes}"
        return self._too_many(uid, stripes)

    def _too_many(self, uid: int, stripes: int) -> str:
        limits = (
            (f"uid {uid}", uid, MAX_PROMISES_OF_USER, MAX_STRIPES_OF_USER),
            ("all users together", None, MAX_PROMISES, MAX_STRIPES),
        )
        for who, of, most, most_stripes in limits:
            held, held_stripes = self._ledger.numbers(of)
            held, held_stripes = held + self._numbers[of], held_stripes + self._stripes[of]
            if held + 1 > most:
                return f"expected at most {most} promises of {who}, found {held} and one more"
            if held_stripes + stripes > most_stripes:
                return f"expected at most {most_stripes} promised stripes of {who}, found {held_stripes + stripes}"
        return ""


MAX_SERVERS = 16_384
MAX_FILE_SYSTEMS = 64
MAX_TARGETS = 131_072
MAX_UNREADABLE = 1_000
MAX_JOBS = 10
"""Of one server: those of most bytes, which come first, and as many of most operations."""


class ReportLimits:
    """What of the reports gets in: names that nobody has must not fill the memory.

    What is known stays known until mdsd ends.
    """

    def __init__(self) -> None:
        self._servers: set[str] = set()
        self._targets: dict[str, set[int]] = {}

    def refusal(self, report: OssReport) -> str:
        """What was expected of this report; empty for one that may come in."""
        fs_names = {ost.fs_name for ost in report.osts}
        if max(map(len, (report.oss, *fs_names))) > MAX_NAME_CHARACTERS:
            return f"a report with names of at most {MAX_NAME_CHARACTERS} characters"
        if report.oss not in self._servers and len(self._servers) >= MAX_SERVERS:
            return f"a report of one of at most {MAX_SERVERS} servers"
        if len(self._targets.keys() | fs_names) > MAX_FILE_SYSTEMS:
            return f"a report of at most {MAX_FILE_SYSTEMS} file systems in all"
        new = {(o.fs_name, o.index) for o in report.osts if o.index not in self._targets.get(o.fs_name, ())}
        if sum(map(len, self._targets.values())) + len(new) > MAX_TARGETS:
            return f"a report of at most {MAX_TARGETS} targets in all"
        return ""

    def note(self, report: OssReport) -> None:
        """The report was taken in."""
        self._servers.add(report.oss)
        for ost in report.osts:
            self._targets.setdefault(ost.fs_name, set()).add(ost.index)

    @staticmethod
    def trimmed(report: OssReport) -> OssReport:
        """Without what nobody asks mdsd for: rates of clients and of all but the busiest jobs, routes (an OSS that
        wants rules tells of its own), a long list of what could not be read.
        """
        by_operations = nlargest(MAX_JOBS, report.jobs, key=lambda job: job.operations)
        few = {job.job_id: job for job in (*report.jobs[:MAX_JOBS], *by_operations)}
        jobs = tuple(job for name, job in few.items() if len(name) <= MAX_NAME_CHARACTERS)
        unreadable = tuple(name[:MAX_NAME_CHARACTERS] for name in report.unreadable[:MAX_UNREADABLE])
        return msgspec.structs.replace(
            report, jobs=jobs, clients=(), routes=(), unreadable=unreadable, parts={}
        )
