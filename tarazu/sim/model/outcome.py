"""What a simulation says: when each job had done what, and what each OST and OSS had to do."""

from __future__ import annotations

import msgspec


class JobOutcome(msgspec.Struct, frozen=True):
    """One job, times in seconds after the start of the run."""

    name: str
    start_s: float
    end_s: float
    read_bytes: int
    written_bytes: int
    read_s: float
    """Time in which at least one of its reads was under way."""
    write_s: float
    ost_cost: float
    """Max / mean over the OSTs of the bytes that this job's new files put there (paper, equation 4)."""
    left_to_lustre: int = 0
    """New files that Lustre's allocator placed: all where there is no plan, else those that the plan has not, or
    wants on an OST that is inactive.
    """

    @property
    def read_bytes_per_s(self) -> float:
        return self.read_bytes / self.read_s if self.read_s else 0.0

    @property
    def write_bytes_per_s(self) -> float:
        return self.written_bytes / self.write_s if self.write_s else 0.0


class OstOutcome(msgspec.Struct, frozen=True):
    """One OST over the run."""

    index: int
    placed_bytes: int
    """Of new files."""
    read_bytes: int
    written_bytes: int
    busy_s: float
    """In which at least one operation was under way there."""
    queue_wait_s: float
    """Its queue over time: each moment counts with the operations under way there but one, for a disk serves one at a
    time. 0 where never two were there together; 1 + queue_wait_s / busy_s is how many there were on average.
    """
    queue_max: int
    """The most operations under way there at once."""
    done_s: float
    """When its last byte had moved; 0 if none did."""
    fill: float
    """Used share at the end."""


class OssOutcome(msgspec.Struct, frozen=True):
    """One OSS over the run."""

    name: str
    read_bytes: int
    written_bytes: int
    cpu_s: float
    """Time in which all its CPUs would have been busy with these bytes: counted, it holds nothing back."""


class Outcome(msgspec.Struct, frozen=True):
    """One run of the simulator. Bandwidths are those of all jobs that are waited for together."""

    policy: str
    seed: int
    end_s: float
    """When the last job that is waited for had ended."""
    jobs: tuple[JobOutcome, ...]
    osts: tuple[OstOutcome, ...]
    osses: tuple[OssOutcome, ...]
    ost_cost: float
    """Of the new files of all jobs that are waited for."""
    read_bytes_per_s: float
    write_bytes_per_s: float
    events: int
    """Times at which bandwidth was shared anew."""
