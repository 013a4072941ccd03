"""How many and which at once, by the slowdown that a schedule causes; not in paper A."""
