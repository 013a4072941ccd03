"""What the simulator is compared with: closed forms, another simulator, measured systems."""
