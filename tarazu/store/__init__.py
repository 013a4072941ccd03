"""The interaction database, the paper's view of it, and the placement map."""
