"""From what a node saw to the access pattern (paper, section IV-B).

features     of the requests that a node sees, in the order in which they arrive
classifier   from features to spatiality
counters     from Lustre's counters to observations, on an OSS, an LNet router or a client
detection    from an observation to its pattern
"""

from __future__ import annotations

from tarazu.parts.council.detect.detection import detect

__all__ = ["detect"]
