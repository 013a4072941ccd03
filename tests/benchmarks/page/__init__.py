"""The status page at 3,600 OSTs, in a real browser."""
