"""Events and a network whose bandwidth is shared max-min fairly: what every study uses.

Events are SimPy's, or plain calls where there are millions of short ones.

Nothing here knows of Lustre.
"""
