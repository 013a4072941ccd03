"""The keeper of a pool of good OSTs, on the MGS's node."""
