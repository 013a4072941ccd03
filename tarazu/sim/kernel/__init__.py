"""What every study stands on: events (SimPy, or calls where they are millions of short ones), and a network whose
bandwidth is shared max-min fairly.

Nothing here knows of Lustre.
"""
