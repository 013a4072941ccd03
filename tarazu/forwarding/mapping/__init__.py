"""Which I/O node serves which compute node, for all jobs alike."""
