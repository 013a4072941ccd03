"""The part's daemon, as `tests/daemons/test_service.py` starts it."""

PROGRAMS = {"pool": ("tarazu.parts.pool.service",)}
