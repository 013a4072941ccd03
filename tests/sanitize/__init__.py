"""The library under sanitizers and valgrind: `python -m tests.sanitize`."""
