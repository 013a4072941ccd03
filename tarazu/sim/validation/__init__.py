"""What the simulator is held against: closed forms, another simulator, measured systems; a file each."""
