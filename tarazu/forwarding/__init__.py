"""How many and which I/O resources a job gets: I/O nodes (LNet routers) or OSTs."""
