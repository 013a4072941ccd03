"""Speed and growth; `python -m tests.benchmarks [name...]`."""
