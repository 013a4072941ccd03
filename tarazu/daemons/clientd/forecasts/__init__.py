"""Forecasts, each in a process of its own: a user's history is read where it can harm nobody else.

`pool.py` is clientd's side; `server.py` a process with one thread that has imported what forecasts need, and forks one
for each plan; `work.py` what is done in it; `frames.py` what they say to one another.
"""
