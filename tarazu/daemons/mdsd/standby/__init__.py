"""Two mdsds, one of which answers: which one (roles), and how the other learns what was promised."""
