"""The shared testbed, and an agent on its first client."""

from tests.testbed.conftest import agent, bed, memory_directory, shared_agent, shared_bed

__all__ = ["agent", "bed", "memory_directory", "shared_agent", "shared_bed"]
