"""Three synthetic sites whose files have the published statistics of file sizes on HPC systems, with fixed seeds.

Sources: W1 B. Welch, G. Noer, "Optimizing a hybrid SSD/HDD HPC storage system based on file size distributions", MSST
2013 (65 installations, 600 million files): 25 to 90 % of all files have 64 KiB or less and hold less than 3 % of the
space in most cases, 5 to 15 % in extreme ones. W2 a site in J. Layton, "Understanding the Status of Your Filesystem",
ADMIN Magazine: 40 of 50 million files below 10 KB, 500 of 700 TB used, most of it by very large files.
Who writes a file, and how many are written at one time, is not in them: assumed, as told below.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tarazu.parts.pfl.sizes import Halves
from tarazu.units import GIB, KIB, MIB

PER_DIRECTORY = 100


class Kind(NamedTuple):
    """Files of a lognormal size."""

    share: float
    """Of all files."""
    median_bytes: float
    sigma: float
    writers: int = 1
    at_once: int = 1


class Site(NamedTuple):
    osts: int
    kinds: tuple[Kind, ...]
    limit_bytes: int
    """Files up to it ..."""
    share: tuple[float, float]
    """... are so much of all files, by the source, ..."""
    space: tuple[float, float]
    """... and hold so much of the space."""
    mean_bytes: tuple[float, float] = (0, 1e18)


SITES = {
    # W1's upper end: 90 % small files with a tenth of the space.
    "many small files": Site(
        35,
        (Kind(0.93, 6 * KIB, 1.25), Kind(0.07, 700 * KIB, 1.0)),
        64 * KIB,
        (0.88, 0.92),
        (0.05, 0.15),
    ),
    # W1's lower end: a quarter of the files small, next to no space; jobs of 256 ranks write a file each, or one.
    "few small files": Site(
        248,
        (
            Kind(0.26, 8 * KIB, 1.0),
            Kind(0.50, 4 * MIB, 1.6),
            Kind(0.2385, 512 * MIB, 0.4, 1, 256),
            Kind(0.0015, 64 * GIB, 1.0, 256, 1),
        ),
        64 * KIB,
        (0.23, 0.30),
        (0.0, 0.03),
    ),
    # W2: four fifths below 10 KB, a mean of 10 to 14 MB, the space in very large files.
    "most space in few files": Site(
        64,
        (Kind(0.82, 2 * KIB, 0.9), Kind(0.179, 300 * KIB, 1.9), Kind(0.001, 8 * GIB, 0.8)),
        10_000,
        (0.77, 0.83),
        (0.0, 0.01),
        (7e6, 20e6),
    ),
}


class Drawn(NamedTuple):
    halves: Halves
    share: float
    """Of files up to the limit."""
    space: float
    mean_bytes: float


def drawn(site: Site, files: int, seed: int) -> Drawn:
    """Files of a site, a hundred of one kind to a directory, whose sizes are more alike than those of others."""
    random = np.random.default_rng(seed)
    halves = Halves()
    small = small_bytes = count = total = 0
    directory = 0
    for kind in site.kinds:
        number = max(8, round(files * kind.share))
        left = number
        while left > 0:
            here = min(left, PER_DIRECTORY, max(1, number // 8))
            left -= here
            directory += 1
            # Half of the variance lies between directories.
            middle = np.log(kind.median_bytes) + random.normal(0, kind.sigma * 0.5**0.5)
            sizes = np.exp(random.normal(middle, kind.sigma * 0.5**0.5, here)).astype(np.int64)
            group = b"/site/d%d" % directory
            for n, size in enumerate(sizes.tolist()):
                halves.add(group, group + b"/f%d" % n, size, kind.writers, kind.at_once, "directory")
            few = sizes <= site.limit_bytes
            small += int(few.sum())
            small_bytes += int(sizes[few].sum())
            count += here
            total += int(sizes.sum())
    return Drawn(halves, small / count, small_bytes / total, total / count)
