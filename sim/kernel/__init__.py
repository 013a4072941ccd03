"""What every study stands on: events (SimPy) and a network whose bandwidth is shared max-min fairly.

Nothing here knows of Lustre.
"""
