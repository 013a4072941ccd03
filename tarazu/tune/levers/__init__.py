"""The levers that Lustre has: how each is set, read back and restored."""
