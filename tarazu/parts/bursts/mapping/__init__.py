"""Which I/O node serves which compute node: mappings, what each gives, its rules by NIDs, how one is set (`agent`)."""
