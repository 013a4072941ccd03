"""From what a node saw to the access pattern (paper, section IV-B)."""
