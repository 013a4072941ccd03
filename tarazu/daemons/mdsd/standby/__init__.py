"""Two mdsds, of which one answers: who that is (roles), and how the other one knows all that was promised."""
