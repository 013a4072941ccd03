"""The parts (`tarazu.part`), a folder each: what can be taken away."""
