"""The simulated machine: its parameters, with where each comes from.

The paper's machine (section V-A): PVFS on four servers with one 10k rpm SAS disk each (Seagate ST600MM0088, 600 GB),
written to directly, 64 KB stripes over all; IOFSL on the I/O nodes with 4 to 16 threads that aggregate up to 16
requests; 10 Gbps Ethernet. A server hands its disk one access after the other, for so the paper's own times say: 4 GB
of situation F's writes in about 260 s (section V-C) is 8 ms for 32 KB on each of the four disks, a whole turn and more
for each request.
"""

from __future__ import annotations

from typing import NamedTuple

KiB = 1 << 10


class Disk(NamedTuple):
    """A disk. Defaults: Seagate Savvio 10K.4 product manual (ST9600204SS; 100539221 rev. A, section 4), the 10k rpm SAS
    disk of 600 GB whose figures are all published; the paper's is a later one of the same size, speed and kind."""

    capacity_bytes: float = 600e9
    rotation_s: float = 60 / 10_000
    track_bytes: float = 677_557.0
    """On average; one track a turn: 113 MB/s. Heads and tracks are skewed such that what is contiguous goes on without
    a loss of turns."""
    track_seek_read_s: float = 0.30e-3
    """To the next track, with settling."""
    track_seek_write_s: float = 0.56e-3
    average_seek_read_s: float = 3.8e-3
    """Over a third of the disk; between the two the time grows with the root of the way."""
    average_seek_write_s: float = 4.4e-3
    command_s: float = 0.2e-3
    """The controller's overhead for a command: hidden where the command was already queued."""
    buffer_bytes_per_s: float = 600e6
    """What comes from the disk's buffer (6 Gb/s SAS)."""
    segment_bytes: float = 1 << 20
    """That the disk reads ahead, as far as it has nothing else to do."""
    segments: int = 16
    """Read streams whose data the buffer keeps: 16 MB buffer in segments of 1 MB. (None is kept of writes: no write
    cache, for PVFS writes to the disk directly.)"""

    @property
    def bytes_per_s(self) -> float:
        return self.track_bytes / self.rotation_s


class RequestSystem(NamedTuple):
    """Servers, I/O nodes and what lies between them."""

    servers: int = 4
    disk: Disk = Disk()
    stripe_bytes: int = 64 * KiB
    """PVFS' default (section V-A)."""
    threads: int = 16
    """Of an I/O node: dispatches under way (IOFSL: 4 to 16; they are all there as soon as there is work)."""
    aggregate: int = 16
    """Requests of one dispatch, at most (IOFSL's default)."""
    link_bytes_per_s: float = 1.25e9
    """10 Gbps, of each I/O node in each direction."""
    hop_s: float = 50e-6
    """One message one way: TCP over 10 GbE with both kernels' stacks."""
    request_s: float = 10e-6
    """Of an I/O node's dispatcher, for each dispatch."""
    client_s: float = 100e-6
    """Between an answer and the process's next request, on average (exponential): library, scheduler, other noise."""


GRID5000 = RequestSystem()
