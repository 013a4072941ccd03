"""How the best value of a lever is learned.

value     what is known of one value: mean, interval; rewards of different demand made comparable
learner   what all promise; what is remembered of each pattern, bounded, to disk and back
ours      `tarazu`: all of it together, for a group; careful: for one client
"""
